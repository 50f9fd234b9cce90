//! A script served over HTTP: the YAML of a scripted back-end, in the framing of any dialect. Statuses,
//! headers, pauses and cuts happen on the connection.

use std::time::Duration;

use ir::fold::Fold;
use ir::{ChatRequest, Dialect, Event, Ledger, Request, adaptation::Component};
use providers::ScriptedUpstream;
use providers::scripted::{Exchange, Script, stream_exchange};
use serde_json::json;
use wire::{Encoder, chat};

use super::{MockServer, ReceivedRequest, ScriptedResponse};

/// A server that plays `yaml` in a dialect. Its model list has one entry: `scripted`.
pub fn scripted(dialect: Dialect, yaml: &str) -> MockServer {
    let script = Script::parse(yaml).unwrap();
    let scripted = ScriptedUpstream::new("scripted", script);
    MockServer::with_responder(move |_, asked| answer(dialect, &scripted, asked))
}

fn answer(dialect: Dialect, scripted: &ScriptedUpstream, asked: &ReceivedRequest) -> ScriptedResponse {
    if asked.head.starts_with("GET ") {
        let models = json!({"data": [{"id": "scripted"}], "models": [{"name": "scripted"}]});
        return ScriptedResponse::good("application/json", models.to_string());
    }
    let chat = match chat::decode_request(dialect, asked.json()) {
        Ok(chat) => chat,
        Err(error) => return refusal(dialect, 400, &error, &[]),
    };
    let streams = wants_stream(dialect, asked, &chat);
    let request = Request::chat("scripted", chat);
    let Some(exchange) = scripted.choose(&request) else {
        let error = ir::Error::invalid_request("the script has no answer for this request");
        return refusal(dialect, 404, &error, &[]);
    };
    let headers: Vec<_> = exchange
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let events = stream_exchange(exchange, engine::port::Upstream::backend(scripted));
    match (exchange.status, events.first()) {
        (Some(status), Some(Event::Error { error })) => refusal(dialect, status, error, &headers),
        _ if streams => stream(dialect, exchange, &events, &headers),
        _ => whole(dialect, events, &headers),
    }
}

fn wants_stream(dialect: Dialect, asked: &ReceivedRequest, chat: &ChatRequest) -> bool {
    match dialect {
        Dialect::Gemini => asked.path().contains(":streamGenerateContent"),
        Dialect::Ollama => asked.json()["stream"] != json!(false),
        _ => chat.streams(),
    }
}

fn refusal(dialect: Dialect, status: u16, error: &ir::Error, headers: &[(&str, &str)]) -> ScriptedResponse {
    let mut headers = headers.to_vec();
    headers.push(("content-type", "application/json"));
    let body = chat::encode_error(dialect, error).to_string();
    ScriptedResponse::response(&format!("{status} Scripted"), &headers, body)
}

fn stream(
    dialect: Dialect,
    exchange: &Exchange,
    events: &[Event],
    headers: &[(&str, &str)],
) -> ScriptedResponse {
    let mut encoder = Encoder::new(dialect).unwrap();
    let mut ledger = Ledger::new(Component::Adapter);
    let mut headers = headers.to_vec();
    headers.push(("content-type", content_type(dialect)));
    let mut answer = ScriptedResponse::response("200 OK", &headers, "");
    for event in events {
        let mut bytes = Vec::new();
        encoder.push(event, &mut bytes, &mut ledger);
        if exchange.delay_ms > 0 {
            answer = answer.pause(Duration::from_millis(exchange.delay_ms));
        }
        answer = answer.then(bytes);
    }
    // An interrupted stream has no terminator.
    if exchange.cut_after_bytes.is_none() {
        let mut bytes = Vec::new();
        encoder.finish(&mut bytes);
        answer = answer.then(bytes);
    }
    answer
}

fn whole(dialect: Dialect, events: Vec<Event>, headers: &[(&str, &str)]) -> ScriptedResponse {
    let mut fold = Fold::new();
    events.into_iter().for_each(|event| fold.push(event));
    let mut headers = headers.to_vec();
    headers.push(("content-type", "application/json"));
    match fold.finish() {
        Ok(response) => {
            let mut ledger = Ledger::new(Component::Adapter);
            let body = chat::encode_response(dialect, &response, &mut ledger).unwrap();
            ScriptedResponse::response("200 OK", &headers, body.to_string())
        }
        // An unstreamed response is cut before its first byte.
        Err(_) => ScriptedResponse::nothing(),
    }
}

/// Content type of a stream of the dialect.
pub(crate) fn content_type(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Ollama => "application/x-ndjson",
        _ => "text/event-stream",
    }
}
