//! Back-ends over real sockets that fail in the middle of a stream: the client gets a complete stream.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt;
use ir::{Dialect, Event};
use serde_json::Value;
use testkit::fault::{events, stream_of};
use testkit::http::{MockServer, ScriptedResponse};

use crate::harness::{REPLY, Stage, assemble, data, input};

async fn read(request: reqwest::RequestBuilder) -> String {
    let request = request.header("accept", "application/x-ndjson");
    request.send().await.unwrap().text().await.unwrap()
}

/// [`REPLY`] in two deltas: a stream short enough to be cut at every byte.
fn short_stream(dialect: Dialect) -> Vec<u8> {
    let (first, second) = REPLY.split_at(REPLY.floor_char_boundary(REPLY.len() / 2));
    let mut events = events("");
    events.retain(|event| !matches!(event, Event::BlockDelta { .. }));
    events.splice(2..2, [Event::text(0, first), Event::text(0, second)]);
    stream_of(dialect, &events)
}

/// Each kind of back-end over real sockets, cut at every byte of its stream.
#[tokio::test]
async fn http_backend_cut_at_any_byte_leaves_data_unchanged() {
    for (kind, dialect) in [
        ("openai", Dialect::OpenaiChat),
        ("anthropic", Dialect::Anthropic),
        ("gemini", Dialect::Gemini),
        ("ollama", Dialect::Ollama),
    ] {
        let whole = short_stream(dialect);
        let places = whole.len();
        let content_type = match dialect {
            Dialect::Ollama => "application/x-ndjson",
            _ => "text/event-stream",
        };
        let upstream = MockServer::with_responder(move |call, _| {
            ScriptedResponse::good(content_type, whole.get(..call % places).unwrap())
        });
        let stage = Stage::new();
        let talker = stage.talker(0);
        let script = talker.strip_prefix("scripted:").unwrap();
        let config = stage.config(&format!(
            "[routing]\npolicy = \"priority\"\nretry = {{budget_ratio = 1.0, budget_min = 1000, same_backend_max = 0}}\n\
             breaker = {{failures = 1000, failure_ratio = 1.0, open_ms = 1, open_max_ms = 1}}\n\
             [[backends]]\nname = \"dying\"\nkind = \"{kind}\"\nmodel = \"m\"\nbase_url = \"{}\"\npriority = 1\n\
             [[backends]]\nname = \"good\"\nkind = \"scripted\"\nscript = {script:?}\n",
            upstream.url("")
        ));
        let server = stage.serve_with(&["--config", &config], &[]);
        // The breaker opens for a moment after a thousand failures, so a few runs do not ask this back-end.
        let runs = (0..2 * places)
            .take_while(|_| upstream.received().len() < places)
            .map(|_| read(server.execute("counter", &input())));
        let mut answers = futures::stream::iter(runs).buffer_unordered(8);
        while let Some(text) = answers.next().await {
            let envelope = assemble(&text).envelope;
            assert_eq!(envelope["data"], data(), "{kind}: {text}");
        }
        assert!(upstream.received().len() >= places, "{kind} was not asked");
    }
}

/// Servers close idle connections, possibly at the moment a request is sent. There is no other back-end, and
/// every call succeeds.
#[tokio::test]
async fn request_on_closed_keepalive_connection_is_sent_again() {
    let (url, connections) = closes_on_second_request();
    let stage = Stage::new();
    let config = stage.config(&format!(
        "[[backends]]\nname = \"only\"\nkind = \"openai\"\nmodel = \"m\"\nbase_url = \"{url}\"\n"
    ));
    let server = stage.serve_with(&["--config", &config], &[]);
    for round in 1..=3 {
        let response = server.execute("counter", &input()).send().await.unwrap();
        let envelope: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        assert_eq!(envelope["data"], data(), "{envelope}");
        assert_eq!(connections.load(Ordering::Relaxed), round);
    }
}

/// Answers one request on each connection, reads a second one, and closes the connection.
fn closes_on_second_request() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let stream = stream_of(Dialect::OpenaiChat, &events(REPLY));
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
        stream.len()
    );
    let answer = [head.into_bytes(), stream].concat();
    let connections = Arc::new(AtomicUsize::new(0));
    let count = connections.clone();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            count.fetch_add(1, Ordering::Relaxed);
            if read_request(&mut socket) {
                socket.write_all(&answer).unwrap();
                read_request(&mut socket);
            }
        }
    });
    (url, connections)
}

/// Whether a complete request was read.
fn read_request(socket: &mut TcpStream) -> bool {
    let mut received = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&received);
        let length = text.split_once("\r\n\r\n").map(|(head, body)| {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.trim().parse::<usize>().unwrap())
            });
            (length.unwrap_or(0), body.len())
        });
        if length.is_some_and(|(told, come)| come >= told) {
            return true;
        }
        let mut room = [0; 4096];
        match socket.read(&mut room) {
            Ok(count) if count > 0 => received.extend_from_slice(&room[..count]),
            _ => return false,
        }
    }
}
