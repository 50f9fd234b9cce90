//! Streams of the canonical API: counted in the metrics, and refused by an `Accept` header with weight 0.

use serde_json::{Value, json};

use crate::harness::{Server, Stage};

const REPLY: &str = "The capital of France is Paris.";

fn chat(model: &str, streams: bool) -> Value {
    json!({"operation": "chat_completions", "payload": {
        "model": model,
        "messages": [{"role": "user", "content": crate::harness::input().to_string()}],
        "generation": {"stream": streams},
    }})
}

async fn ask(server: &Server, accept: Option<&str>, body: &Value) -> reqwest::Response {
    let request = server.post("/v1/canonical").body(body.to_string());
    let request = match accept {
        Some(accept) => request.header("accept", accept),
        None => request,
    };
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    response
}

async fn metric(server: &Server, name: &str) -> usize {
    let text = server.get("/metrics").send().await.unwrap().text().await.unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in:\n{text}"))
        .parse()
        .unwrap()
}

fn serve(stage: &Stage, delay_ms: u64) -> Server {
    let reply = json!({"reply": REPLY, "chunk_bytes": 5, "delay_ms": delay_ms});
    stage.serve(&[&stage.script("talker", &json!([reply]))])
}

#[tokio::test]
async fn open_streams_and_their_bytes_are_counted() {
    let stage = Stage::new();
    let server = serve(&stage, 50);
    let mut sent = 0;
    for framing in ["text/event-stream", "application/x-ndjson"] {
        let response = ask(&server, Some(framing), &chat("m", false)).await;
        assert_eq!(metric(&server, "cogn_streams_open").await, 1);
        sent += response.bytes().await.unwrap().len();
        assert_eq!(metric(&server, "cogn_stream_bytes_total").await, sent);
    }
    assert_eq!(metric(&server, "cogn_streams_open").await, 0);
}

#[tokio::test]
async fn accept_is_read_with_its_weights() {
    const JSON: &str = "application/json";
    const SSE: &str = "text/event-stream";
    const LINES: &str = "application/x-ndjson";
    let stage = Stage::new();
    let server = serve(&stage, 0);
    for (accept, streams, expected) in [
        (None, false, JSON),
        (None, true, SSE),
        (Some("application/json, text/event-stream;q=0"), false, JSON),
        (Some("application/json, text/event-stream;q=0"), true, JSON),
        (
            Some("text/event-stream;q=0.1, application/json;q=0.9"),
            false,
            JSON,
        ),
        (
            Some("text/event-stream;q=0.1, application/x-ndjson"),
            false,
            LINES,
        ),
        (Some("application/x-ndjson, text/event-stream;q=0"), true, LINES),
        (Some("*/*"), true, SSE),
        // Clients of other APIs name JSON in every request.
        (Some("application/json"), true, SSE),
    ] {
        let response = ask(&server, accept, &chat("m", streams)).await;
        assert_eq!(
            response.headers()["content-type"],
            expected,
            "{accept:?} {streams}"
        );
    }
    // The same header on the endpoint of a module.
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    for (accept, expected) in [("application/json, text/event-stream;q=0", JSON), (SSE, SSE)] {
        let run = server.execute("counter", &crate::harness::input());
        let response = run.header("accept", accept).send().await.unwrap();
        assert_eq!(response.headers()["content-type"], expected, "{accept}");
    }
}
