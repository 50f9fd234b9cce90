//! Timeouts and backpressure of a server: a stalled back-end, and readers that stop reading.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use ir::Dialect;
use serde_json::{Value, json};
use testkit::fault::{events, stream_of};
use testkit::http::{MockServer, ScriptedResponse};

use crate::harness::{REPLY, Server, Stage, assemble, chunks, input};

#[tokio::test]
async fn stalled_backend_ends_stream_with_its_code() {
    let whole = stream_of(Dialect::OpenaiChat, &events(REPLY));
    let half = whole.len() / 2;
    let begun = ScriptedResponse::good("text/event-stream", &whole[..half]);
    let silent = MockServer::with_responses(begun.pause(Duration::from_secs(600)));
    let stage = Stage::new();
    let config = stage.config(&format!(
        "[timeouts]\nidle_ms = 200\n[routing]\nretry = {{budget_ratio = 0.0, budget_min = 0, same_backend_max = 0}}\n\
         [[backends]]\nname = \"silent\"\nkind = \"openai\"\nmodel = \"m\"\nbase_url = \"{}\"\n",
        silent.url("")
    ));
    let server = stage.serve_with(&["--config", &config], &[]);
    for accept in ["text/event-stream", "application/x-ndjson"] {
        let request = server.execute("counter", &input()).header("accept", accept);
        let text = request.send().await.unwrap().text().await.unwrap();
        let assembled = assemble(&text);
        let error = &assembled.envelope["error"];
        assert_eq!(
            (&error["code"], &error["recoverable"]),
            (&json!("E2011"), &json!(true)),
            "{text}"
        );
        assert_eq!(error["recovery"]["last_seq"], chunks(&text).len(), "{text}");
        assert!(
            assembled.envelope["partial_data"]["rationale"].is_string(),
            "{text}"
        );
    }
    // A non-streaming response has no partial data; its status is 504.
    let response = server.execute("counter", &input()).send().await.unwrap();
    assert_eq!(response.status(), 504);
    let body: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    assert_eq!(body["error"]["code"], "E2002");
}

/// The minimum over a second: a run that has ended may not have released its text yet.
async fn settled_kib(server: &Server) -> u64 {
    let mut least = memory_kib(server);
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        least = least.min(memory_kib(server));
    }
    least
}

fn memory_kib(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Starts runs with a long answer whose readers do not read, and waits until all of them have ended in the
/// journal.
async fn stall(server: &Server, readers: usize, done: usize) -> Vec<TcpStream> {
    let body = json!({"input": input(), "_options": {"response_mode": "streaming"}}).to_string();
    let stalled = (0..readers).map(|_| {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let head = "POST /v1/modules/counter/execute HTTP/1.0\r\nhost: 127.0.0.1\r\n";
        let length = body.len();
        write!(stream, "{head}content-length: {length}\r\n\r\n{body}").unwrap();
        stream
    });
    let stalled = stalled.collect();
    let ended = async {
        loop {
            let runs = server.get("/v1/runs?state=done&limit=200").send().await.unwrap();
            let runs: Value = serde_json::from_slice(&runs.bytes().await.unwrap()).unwrap();
            if runs["data"]["runs"].as_array().unwrap().len() == done {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), ended)
        .await
        .unwrap();
    stalled
}

/// A stalled reader holds at most the event that it is being sent, here the whole text once; it does not block
/// its run, and a reader that continues receives every event.
#[tokio::test]
async fn stalled_readers_hold_one_event_and_lose_none() {
    const READERS: usize = 5;
    let stage = Stage::new();
    // Longer than the socket buffers of a connection.
    let sentences = (0..130_000).map(|number| format!("Sentence {number} of many words goes on. "));
    let long: String = sentences.collect();
    let reply = json!({
        "ok": true,
        "meta": {"confidence": 0.9, "risk": "low", "explain": "long"},
        "data": {"rationale": long, "n": 3},
    });
    let script = stage.script(
        "long",
        &json!([{"reply": reply.to_string(), "chunk_bytes": 65536}]),
    );
    let mut command = stage.serving(&[], &[&script]);
    // Memory that the allocator retains after it was freed varies; it is not measured here.
    command.env("_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0");
    let server = Server::spawn(command);
    // The first runs measure the baseline of a server that has run such modules.
    let mut stalled = stall(&server, READERS, READERS).await;
    let before = settled_kib(&server).await;
    for wave in 2..=3 {
        stalled.extend(stall(&server, READERS, wave * READERS).await);
    }
    let grown = settled_kib(&server).await.saturating_sub(before);
    // The text is sent twice: in chunks, and complete in the final event.
    let unread = u64::try_from(2 * READERS * 2 * long.len() / 1024).unwrap();
    assert!(
        grown < unread / 2,
        "{grown} KiB of memory for {unread} KiB of unread output"
    );
    let mut text = Vec::new();
    stalled.pop().unwrap().read_to_end(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let (_, text) = text.split_once("\r\n\r\n").unwrap();
    assert_eq!(assemble(text).envelope["data"]["rationale"], long);
}
