//! Traces: the caller's trace context is propagated to the response, to the back-end and to a collector.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Stage, input};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";

/// Answers every request with this status, and returns head and body.
pub(crate) fn listener(status: &'static str) -> (SocketAddr, mpsc::Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (heard, hearing) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut text = String::new();
            let mut bytes = [0; 4096];
            let (head, body) = loop {
                let size = stream.read(&mut bytes).unwrap();
                text.push_str(&String::from_utf8_lossy(bytes.get(..size).unwrap()));
                let Some((head, body)) = text.split_once("\r\n\r\n") else {
                    continue;
                };
                let length = head.lines().find_map(|line| {
                    line.to_lowercase()
                        .strip_prefix("content-length:")?
                        .trim()
                        .parse()
                        .ok()
                });
                if body.len() >= length.unwrap_or(0) {
                    break (head.to_lowercase(), String::from(body));
                }
            };
            heard.send((head, body)).ok();
            let answer = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{{}}");
            stream.write_all(answer.as_bytes()).ok();
        }
    });
    (address, hearing)
}

pub(crate) fn attribute<'a>(span: &'a Value, key: &str) -> Option<&'a str> {
    let pairs = span["attributes"].as_array().unwrap();
    let value = pairs.iter().find(|pair| pair["key"] == key)?["value"].as_object()?;
    value.values().next()?.as_str()
}

#[tokio::test]
async fn trace_context_is_propagated_to_response_backend_and_collector() {
    let stage = Stage::new();
    let (backend, asked) = listener("503 Service Unavailable");
    let (collector, collected) = listener("200 OK");
    let script = stage.talker(0);
    let script = script.strip_prefix("scripted:").unwrap();
    stage.configure(&format!(
        "[[backends]]\nname = \"down\"\nkind = \"openai\"\nmodel = \"m\"\nbase_url = \"http://{backend}/v1\"\npriority = 2\n\
         [[backends]]\nname = \"up\"\nkind = \"scripted\"\nscript = \"{script}\"\npriority = 1\n\
         [traces]\nendpoint = \"http://{collector}/v1/traces\"\n"
    ));
    let server = stage.serve(&[]);
    let request = server.execute("counter", &input()).header("traceparent", PARENT);
    let response = request.send().await.unwrap();
    let propagated = String::from(response.headers()["traceparent"].to_str().unwrap());
    let session = String::from(response.headers()["x-cognitive-session"].to_str().unwrap());
    let envelope: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    assert_eq!(envelope["meta"]["trace_id"], TRACE_ID, "{envelope}");
    assert!(
        propagated.starts_with(&format!("00-{TRACE_ID}-")) && propagated != PARENT,
        "{propagated}"
    );

    let timeout = Duration::from_secs(60);
    let (head, _) = asked.recv_timeout(timeout).unwrap();
    assert!(head.contains(&format!("traceparent: {propagated}")), "{head}");

    let (_, body) = collected.recv_timeout(timeout).unwrap();
    let message: Value = serde_json::from_str(&body).unwrap();
    let spans = message["resourceSpans"][0]["scopeSpans"][0]["spans"]
        .as_array()
        .unwrap();
    let (run, attempts) = spans.split_first().unwrap();
    assert_eq!(run["traceId"], TRACE_ID);
    assert_eq!(run["parentSpanId"], "b7ad6b7169203331");
    assert!(propagated.contains(run["spanId"].as_str().unwrap()));
    assert_eq!(attribute(run, "gen_ai.conversation.id"), Some(session.as_str()));
    let outcomes: Vec<_> = attempts
        .iter()
        .map(|attempt| {
            assert_eq!(attempt["parentSpanId"], run["spanId"]);
            (
                attribute(attempt, "cogn.backend"),
                attribute(attempt, "cogn.outcome"),
            )
        })
        .collect();
    assert_eq!(outcomes.first(), Some(&(Some("down"), Some("failed"))));
    assert_eq!(outcomes.last(), Some(&(Some("up"), Some("succeeded"))));
    // No prompt or answer text.
    for words in ["two words", "Größe", "Count the words"] {
        assert!(!body.contains(words), "{body}");
    }
}

#[tokio::test]
async fn invalid_trace_context_is_ignored() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let request = server
        .execute("counter", &input())
        .header("traceparent", "00-nothing");
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(!response.headers().contains_key("traceparent"));
}
