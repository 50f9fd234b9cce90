//! A vendor client for tests: it sends requests as the vendors' clients do, and decodes responses with the
//! codecs of the gateway. Streamed and unstreamed responses are returned as one complete response.

use ir::{ChatResponse, Dialect, Event, Fold};
use reqwest::Response;
use serde_json::{Value, json};
use wire::{Decoder, chat};

use crate::harness::Server;

pub(crate) const DIALECTS: [Dialect; 3] = [Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::Anthropic];

pub(crate) fn path(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Anthropic => "/v1/messages",
        Dialect::OpenaiResponses => "/v1/responses",
        _ => "/v1/chat/completions",
    }
}

/// A request in a dialect.
pub(crate) fn question(dialect: Dialect, model: &str, text: &str) -> Value {
    match dialect {
        Dialect::OpenaiResponses => json!({"model": model, "input": text}),
        Dialect::Anthropic => {
            json!({"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": text}]})
        }
        _ => json!({"model": model, "messages": [{"role": "user", "content": text}]}),
    }
}

/// The same with a tool that may be called.
pub(crate) fn with_tool(dialect: Dialect, mut question: Value) -> Value {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    question["tools"] = match dialect {
        Dialect::OpenaiResponses => {
            json!([{"type": "function", "name": "weather", "parameters": schema}])
        }
        Dialect::Anthropic => json!([{"name": "weather", "input_schema": schema}]),
        _ => json!([{"type": "function", "function": {"name": "weather", "parameters": schema}}]),
    };
    question
}

pub(crate) async fn ask(server: &Server, dialect: Dialect, body: &Value) -> Response {
    let request = server.post(path(dialect)).body(body.to_string());
    request.send().await.unwrap()
}

pub(crate) async fn body_of(response: Response) -> Value {
    let bytes = response.bytes().await.unwrap();
    serde_json::from_slice(&bytes).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&bytes)))
}

/// A complete response, or a stream read to its end; an error in the stream fails the test.
pub(crate) async fn read(dialect: Dialect, response: Response) -> ChatResponse {
    let status = response.status();
    let streams = response.headers()["content-type"] == "text/event-stream";
    let bytes = response.bytes().await.unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    assert_eq!(status, 200, "{text}");
    if !streams {
        return chat::decode_response(dialect, serde_json::from_slice(&bytes).unwrap()).unwrap();
    }
    assert!(is_ended(&text), "{text}");
    let mut fold = Fold::new();
    for event in events(dialect, &bytes) {
        fold.push(event);
    }
    fold.finish().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

pub(crate) fn events(dialect: Dialect, bytes: &[u8]) -> Vec<Event> {
    let mut decoder = Decoder::new(dialect).unwrap();
    let mut events = Vec::new();
    decoder.push(bytes, &mut events);
    decoder.finish(&mut events);
    events
}

/// Whether a stream contains the vendor's terminator of a successful stream.
pub(crate) fn is_ended(text: &str) -> bool {
    ["data: [DONE]", "event: message_stop", "event: response.completed"]
        .iter()
        .any(|mark| text.contains(mark))
}

/// Kind and message of an error in the vendor's format.
pub(crate) fn error_of(dialect: Dialect, body: &Value) -> (String, String) {
    if dialect == Dialect::Anthropic {
        assert_eq!(body["type"], "error", "{body}");
    } else {
        assert!(body["error"]["code"].is_string(), "{body}");
    }
    let text = |key: &str| String::from(body["error"][key].as_str().unwrap_or_else(|| panic!("{body}")));
    (text("type"), text("message"))
}
