//! What is recorded about relayed calls: usage, metrics and traces, with names and numbers of all attempted
//! back-ends.

use std::process::Command;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::http::{MockServer, ScriptedResponse};

use crate::harness::{Server, Stage};
use crate::openai_unary::{ALL, back_end, json_of, vendor};
use crate::serve_trace::{attribute, listener};
use crate::vendor_client::{DIALECTS, ask, question};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";
const TIMEOUT: Duration = Duration::from_secs(60);

/// A back-end that is called first and is busy, and one that answers.
struct Scene {
    stage: Stage,
    server: Server,
    spans: Receiver<(String, String)>,
    _upstreams: [MockServer; 2],
}

impl Scene {
    fn new() -> Self {
        let stage = Stage::new();
        let busy =
            MockServer::with_responses(ScriptedResponse::response("503 Service Unavailable", &[], "{}"));
        let good = vendor();
        let (collector, spans) = listener("200 OK");
        let first = back_end(
            "busy",
            &busy.url(""),
            &format!("operations = {ALL}\npriority = 2"),
        );
        let second = back_end(
            "good",
            &good.url(""),
            &format!("operations = {ALL}\npriority = 1"),
        );
        let config = stage.config(&format!(
            "{first}{second}[routing]\npolicy = \"priority\"\nretry = {{same_backend_max = 0}}\n\
             breaker = {{failures = 1000, failure_ratio = 1.0}}\n\
             [traces]\nendpoint = \"http://{collector}/v1/traces\"\n"
        ));
        let server = stage.serve_with(&["--config", &config], &[]);
        Self {
            stage,
            server,
            spans,
            _upstreams: [busy, good],
        }
    }

    /// Received spans, grouped by call, until this many calls are complete.
    fn calls(&self, count: usize) -> Vec<Vec<Value>> {
        let mut calls: Vec<Vec<Value>> = Vec::new();
        let mut spans = 0;
        while spans < count * 3 {
            let (_, body) = self.spans.recv_timeout(TIMEOUT).unwrap();
            let message: Value = serde_json::from_str(&body).unwrap();
            let sent = &message["resourceSpans"][0]["scopeSpans"][0]["spans"];
            for span in sent.as_array().unwrap() {
                spans += 1;
                // The span of the logical call precedes those of its attempts.
                match span["kind"] == 1 {
                    true => calls.push(vec![span.clone()]),
                    false => calls.last_mut().unwrap().push(span.clone()),
                }
            }
        }
        calls
    }
}

/// The span of the call has no usage; each attempt has a child span with its usage.
fn check(call: &[Value], operation: &str, run: &str, used: (Option<&str>, Option<&str>)) {
    let [call, failed, won] = call else {
        panic!("one call and two attempts: {call:?}")
    };
    assert_eq!(call["name"], "relay");
    assert_eq!(call["traceId"], TRACE_ID);
    assert_eq!(call["parentSpanId"], "b7ad6b7169203331");
    assert!(call.get("status").is_none(), "it ended well: {call}");
    assert_eq!(attribute(call, "gen_ai.operation.name"), Some(operation));
    assert_eq!(attribute(call, "gen_ai.request.model"), Some("m"));
    assert_eq!(attribute(call, "gen_ai.conversation.id"), Some(run));
    assert_eq!(attribute(call, "cogn.attempts"), Some("2"));
    assert_eq!(attribute(call, "cogn.module"), None);
    // The sum over all spans must count each token once.
    assert_eq!(attribute(call, "gen_ai.usage.input_tokens"), None);
    for (attempt, number, backend) in [(failed, "1", "busy"), (won, "2", "good")] {
        assert_eq!(attempt["kind"], 3, "a call to somewhere else");
        assert_eq!(attempt["parentSpanId"], call["spanId"]);
        assert_eq!(attempt["traceId"], TRACE_ID);
        assert_eq!(attribute(attempt, "gen_ai.operation.name"), Some(operation));
        assert_eq!(attribute(attempt, "gen_ai.provider.name"), Some("openai"));
        assert_eq!(attribute(attempt, "gen_ai.request.model"), Some("m"));
        assert_eq!(attribute(attempt, "cogn.backend"), Some(backend));
        assert_eq!(attribute(attempt, "cogn.attempt"), Some(number));
    }
    assert_ne!(failed["spanId"], won["spanId"]);
    assert_eq!(attribute(failed, "cogn.outcome"), Some("failed"));
    assert!(attribute(failed, "error.type").is_some());
    assert_eq!(failed["status"]["code"], 2);
    assert_eq!(attribute(failed, "gen_ai.usage.input_tokens"), None);
    assert_eq!(attribute(won, "cogn.outcome"), Some("succeeded"));
    assert_eq!(attribute(won, "error.type"), None);
    assert_eq!(attribute(won, "gen_ai.usage.input_tokens"), used.0);
    assert_eq!(attribute(won, "gen_ai.usage.output_tokens"), used.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_traced_with_every_attempt() {
    let scene = Scene::new();
    let mut expected = Vec::new();
    for dialect in DIALECTS {
        let request = scene.server.post(crate::vendor_client::path(dialect));
        let body = question(dialect, "m", "two words").to_string();
        let response = request
            .header("traceparent", PARENT)
            .body(body)
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 200);
        let run = String::from(response.headers()["x-cogn-run"].to_str().unwrap());
        expected.push(("chat", run, (Some("7"), Some("3"))));
    }
    for (path, operation, used) in [
        ("/v1/embeddings", "embeddings", (Some("3"), None)),
        (
            "/v1/images/generations",
            "image_generation",
            (Some("5"), Some("100")),
        ),
        ("/v1/audio/speech", "text_to_speech", (None, None)),
    ] {
        let body = json!({"model": "m", "input": "two words", "prompt": "two words", "voice": "v"});
        let request = scene.server.post(path).header("traceparent", PARENT);
        let response = request.body(body.to_string()).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        let run = String::from(response.headers()["x-cogn-run"].to_str().unwrap());
        expected.push((operation, run, used));
    }
    let calls = tokio::task::block_in_place(|| scene.calls(expected.len()));
    assert_eq!(calls.len(), expected.len(), "one span for each call");
    for (operation, run, used) in &expected {
        let own = |call: &&Vec<Value>| attribute(&call[0], "gen_ai.conversation.id") == Some(run.as_str());
        let call = calls
            .iter()
            .find(own)
            .unwrap_or_else(|| panic!("{run} is not there: {calls:?}"));
        check(call, operation, run, *used);
        let name = won_name(call);
        assert!(name.starts_with(&format!("{operation} ")), "{name}");
    }
    assert!(
        !format!("{calls:?}").contains("two words"),
        "no content of the call"
    );
}

fn won_name(call: &[Value]) -> &str {
    call.last().and_then(|span| span["name"].as_str()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_counted_in_usage_and_metrics() {
    let scene = Scene::new();
    for dialect in DIALECTS {
        let response = ask(&scene.server, dialect, &question(dialect, "m", "hi")).await;
        assert_eq!(response.status(), 200);
    }
    let body = json!({"model": "m", "input": "a"}).to_string();
    let response = scene
        .server
        .post("/v1/embeddings")
        .body(body)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    // Usage is written asynchronously.
    let line = loop {
        let usage = scene.server.get("/v1/usage?by=module").send().await.unwrap();
        let usage = json_of(usage).await;
        let line = usage["data"]["lines"][0].clone();
        if line["runs"] == 4 {
            break line;
        }
        tokio::task::yield_now().await;
    };
    // 3 x 7 and 3 tokens in; 3 x 3 out, and vectors have none. No usage is known for the refused attempts.
    assert_eq!(line["module"], Value::Null, "{line}");
    assert_eq!(line["attempts"], 8, "{line}");
    assert_eq!(line["input_tokens"], 24, "{line}");
    assert_eq!(line["output_tokens"], 9, "{line}");
    let usage = json_of(scene.server.get("/v1/usage?by=model").send().await.unwrap()).await;
    let lines = usage["data"]["lines"].as_array().unwrap();
    let named = lines.iter().find(|line| line["model"] == "m").unwrap();
    assert_eq!(named["input_tokens"], 24, "{usage}");

    let figures = scene
        .server
        .get("/metrics")
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    for (route, count) in [
        ("/v1/chat/completions", 1),
        ("/v1/responses", 1),
        ("/v1/messages", 1),
        ("/v1/embeddings", 1),
    ] {
        let line =
            format!("cogn_http_requests_total{{method=\"POST\",route=\"{route}\",status=\"200\"}} {count}\n");
        assert!(figures.contains(&line), "{line} is not in\n{figures}");
    }
    assert!(figures.contains("cogn_runs_running 0\n"), "{figures}");

    // The same from the journal, and for human output.
    let journal = scene.stage.path("journal.db");
    let list = |more: &[&str]| {
        let mut command: Command = scene.stage.cogn();
        command.arg("usage").arg("--journal").arg(&journal).args(more);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let lines: Value = serde_json::from_str(&list(&["--by", "module", "--json"])).unwrap();
    assert_eq!(lines[0]["runs"], 4, "{lines}");
    assert_eq!(lines[0]["attempts"], 8, "{lines}");
    assert_eq!(lines[0]["input_tokens"], 24, "{lines}");
    assert_eq!(lines[0]["output_tokens"], 9, "{lines}");
    let text = list(&["--by", "module"]);
    let cells: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(cells[..3], ["MODULE", "RUNS", "ATTEMPTS"], "{text}");
    assert!(cells.ends_with(&["-", "4", "8", "24", "9", "5"]), "{text}");
}
