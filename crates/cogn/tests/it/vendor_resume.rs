//! Resumable streams: the same events for every reader, and the remaining events after a disconnect.

use futures::StreamExt;
use ir::Dialect;
use serde_json::{Value, json};
use testkit::http::scripted;

use crate::harness::{Server, Stage};
use crate::keys::key;
use crate::vendor_client::{DIALECTS, body_of, error_of, events, is_ended, path, question};

fn streamed(dialect: Dialect) -> Value {
    let mut body = question(dialect, "m", "hi");
    body["stream"] = json!(true);
    body
}

fn begin(server: &Server, dialect: Dialect) -> reqwest::RequestBuilder {
    let request = server.post(path(dialect)).header("x-cogn-resumable", "1");
    request.body(streamed(dialect).to_string())
}

fn go_on(server: &Server, dialect: Dialect, id: &str) -> reqwest::RequestBuilder {
    let request = server.post(path(dialect)).header("last-event-id", id);
    request.body(streamed(dialect).to_string())
}

fn text_of(dialect: Dialect, stream: &str) -> String {
    let mut fold = ir::Fold::new();
    events(dialect, stream.as_bytes())
        .into_iter()
        .for_each(|event| fold.push(event));
    fold.finish()
        .unwrap_or_else(|error| panic!("{error}\n{stream}"))
        .text()
}

fn serve(stage: &Stage, flags: &[&str], delay_ms: u64) -> (testkit::http::MockServer, Server) {
    let script = json!([{"reply": "one two three four", "chunk_bytes": 4, "delay_ms": delay_ms}]);
    let upstream = scripted(Dialect::OpenaiChat, &script.to_string());
    let config = stage.config(&format!(
        "[[backends]]\nname = \"b\"\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n",
        upstream.url("")
    ));
    let flags = [flags, &["--config", &config]].concat();
    let server = stage.serve_with(&flags, &[]);
    (upstream, server)
}

#[tokio::test]
async fn stream_resumes_after_any_event() {
    let stage = Stage::new();
    let (upstream, server) = serve(&stage, &[], 0);
    for dialect in DIALECTS {
        let whole = begin(&server, dialect)
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        assert!(is_ended(&whole), "{whole}");
        assert_eq!(text_of(dialect, &whole), "one two three four");
        let ids: Vec<&str> = whole
            .lines()
            .filter_map(|line| line.strip_prefix("id: "))
            .collect();
        assert!(ids.len() > 4, "{whole}");
        for id in ids {
            let rest = go_on(&server, dialect, id).send().await.unwrap();
            assert_eq!(rest.status(), 200, "{id}");
            let rest = rest.text().await.unwrap();
            let (_, expected) = whole.split_once(&format!("id: {id}\n")).unwrap();
            let (_, expected) = expected.split_once("\n\n").unwrap();
            assert_eq!(rest, expected, "{dialect} {id}");
        }
    }
    assert_eq!(
        upstream.received().len(),
        DIALECTS.len(),
        "each request was sent once"
    );
}

/// A client that was disconnected loses nothing: the answer is completed.
#[tokio::test]
async fn disconnected_client_gets_remaining_events() {
    let stage = Stage::new();
    let (_upstream, server) = serve(&stage, &[], 30);
    for dialect in DIALECTS {
        let mut bytes = begin(&server, dialect).send().await.unwrap().bytes_stream();
        let mut seen = String::new();
        while !seen.contains(":2\n") || !seen.ends_with("\n\n") {
            let piece = bytes.next().await.unwrap().unwrap();
            seen.push_str(&String::from_utf8_lossy(&piece));
        }
        drop(bytes);
        let id = seen
            .lines()
            .filter_map(|line| line.strip_prefix("id: "))
            .next_back()
            .unwrap();
        let rest = go_on(&server, dialect, id)
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        let stream = format!("{seen}{rest}");
        assert!(is_ended(&stream), "{stream}");
        assert_eq!(text_of(dialect, &stream), "one two three four", "{dialect}");
    }
}

#[tokio::test]
async fn stream_of_another_caller_cannot_be_resumed() {
    let stage = Stage::new();
    let (ours, theirs) = (key(&stage, &[]), key(&stage, &["--tenant", "other"]));
    let neighbour = key(&stage, &[]);
    let (_upstream, server) = serve(&stage, &["--require-auth"], 0);
    let dialect = Dialect::Anthropic;
    let stream = begin(&server, dialect).bearer_auth(&ours).send().await.unwrap();
    let stream = stream.text().await.unwrap();
    let id = stream.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
    let status = async |key: &str, id: &str| {
        let response = go_on(&server, dialect, id).bearer_auth(key).send().await.unwrap();
        let status = response.status().as_u16();
        if status != 200 {
            error_of(dialect, &body_of(response).await);
        }
        status
    };
    assert_eq!(status(&ours, id).await, 200);
    let unknown = status(&ours, "sess_01ARZ3NDEKTSV4RRFFQ69G5FAV:1").await;
    for other in [&theirs, &neighbour] {
        assert_eq!(status(other, id).await, unknown, "the same as for an unknown run");
    }
    assert!((400..500).contains(&unknown), "{unknown}");
    // Frames of a dialect are not events of a module; other endpoints do not return them.
    let run = id.split_once(':').unwrap().0;
    for request in [
        server.get(&format!("/v1/runs/{run}/events")),
        server.post(&format!("/v1/runs/{run}/token")),
    ] {
        let response = request.bearer_auth(&neighbour).send().await.unwrap();
        assert_eq!(response.status(), 404);
        assert_eq!(body_of(response).await["error"]["code"], "E4009");
    }
    assert_eq!(status(&ours, "nonsense").await, 400);
    let beyond = id.replace(":1", ":99");
    assert!((400..500).contains(&status(&ours, &beyond).await));
}

/// A stream left unfinished by a killed server is closed with an error by the next one, in the client's
/// dialect.
#[tokio::test]
async fn stream_of_killed_server_ends_in_an_error() {
    let stage = Stage::new();
    let (_upstream, server) = serve(&stage, &[], 200);
    let dialect = Dialect::OpenaiChat;
    let mut bytes = begin(&server, dialect).send().await.unwrap().bytes_stream();
    let mut seen = String::new();
    while !seen.contains("id: ") {
        seen.push_str(&String::from_utf8_lossy(&bytes.next().await.unwrap().unwrap()));
    }
    server.kill();
    let config = stage.path("server.toml").display().to_string();
    let server = stage.serve_with(&["--config", &config], &[]);
    let id = seen.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
    let rest = go_on(&server, dialect, id)
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(!is_ended(&rest) && rest.contains("\"error\""), "{rest}");
}

/// The id in the response identifies the run and the position in its stream.
#[tokio::test]
async fn response_id_is_its_run_id() {
    let stage = Stage::new();
    let (_upstream, server) = serve(&stage, &[], 0);
    for dialect in DIALECTS {
        let response = begin(&server, dialect).send().await.unwrap();
        let run = String::from(response.headers()["x-cogn-run"].to_str().unwrap());
        let stream = response.text().await.unwrap();
        let started = events(dialect, stream.as_bytes()).into_iter().next().unwrap();
        let ir::Event::Started { id: Some(id), .. } = started else {
            panic!("{started:?}")
        };
        let own = run.strip_prefix("sess_").unwrap();
        assert!(id.ends_with(own), "{dialect}: {id} is not {run}");
        assert!(stream.contains(&format!("id: {run}:1\n")), "{stream}");
        let kept = server.get(&format!("/v1/runs/{run}")).send().await.unwrap();
        assert_eq!(kept.status(), 200, "{dialect}");
    }
}
