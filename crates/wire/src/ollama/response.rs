//! Decodes and encodes a unary response.

use ir::{ChatResponse, Error, Ext, Fields, FinishReason, Ledger, Map, Part, PartBody, Phase};
use serde_json::{Value, json};

use crate::ollama::message_encode::{MessageFields, Purpose};
use crate::ollama::{OWN, message_decode, usage};
use crate::openai_chat::book_warnings;
use crate::{constant_field, error_body, timestamp};

pub fn decode(body: Value) -> Result<ChatResponse, Error> {
    if let Some(error) = error_body::from_value(OWN, &body, Phase::BeforeFirstByte, None) {
        return Err(error);
    }
    let bad = |what: &str| Error::invalid_response(Phase::BeforeFirstByte, format!("the answer {what}"));
    let mut fields = Fields::of(body).ok_or_else(|| bad("is not an object"))?;
    let mut message = fields.object("message").ok_or_else(|| bad("has no message"))?;
    let mut calls = message_decode::calls_of(fields.peek_str("created_at"));
    let mut response = ChatResponse {
        model: fields.string("model"),
        ..ChatResponse::default()
    };
    let ext = &mut response.ext;
    response.created = created(&mut fields, ext);
    constant_field::take(&mut fields, OWN, ext, "", "done", &json!(true));
    constant_field::take(&mut message, OWN, ext, "message", "role", &json!("assistant"));
    response.parts = message_decode::parts(&mut message, ext, &mut calls);
    response.usage = usage::take(&mut fields);
    let called = response.parts.iter().any(is_call);
    response.finish_reason = fields.string("done_reason").map(|word| finish_of(&word, called));
    fields.keep("message", message);
    response.ext.extend(OWN, fields.rest());
    Ok(response)
}

pub(super) fn is_call(part: &Part) -> bool {
    matches!(part.body, PartBody::ToolCall(_))
}

/// The time of the response. The text has more digits than the IR, so it is noted.
pub(super) fn created(fields: &mut Fields, ext: &mut Ext) -> Option<u64> {
    let seconds = fields.peek_str("created_at").and_then(timestamp::parse)?;
    let text = fields.string("created_at")?;
    ext.set(OWN, "$created_at", text);
    Some(seconds)
}

/// The time of a response, in its original text if noted.
pub(super) fn created_at(seconds: u64, ext: &Ext) -> Option<String> {
    let noted = ext.note(OWN, "$created_at");
    let noted = noted.filter(|text| timestamp::parse(text) == Some(seconds));
    noted.map(String::from).or_else(|| timestamp::format(seconds))
}

pub(super) fn finish_of(word: &str, called: bool) -> FinishReason {
    match word {
        "stop" if called => FinishReason::ToolCalls,
        "stop" => FinishReason::Stop,
        "length" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        other => FinishReason::Other(String::from(other)),
    }
}

/// Ollama has no filter reason; the name from other dialects is used.
pub(super) fn finish_word(reason: &FinishReason, ledger: &mut Ledger) -> String {
    let word = match reason {
        FinishReason::Stop | FinishReason::StopSequence | FinishReason::ToolCalls => "stop",
        FinishReason::Length => "length",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Pause => {
            let pointer = "/result/payload/finish_reason";
            ledger.changed(
                pointer,
                ir::Action::Replaced,
                "pause",
                "stop",
                format!("{OWN} has no finish reason for a pause"),
            );
            "stop"
        }
        FinishReason::Other(word) => word,
    };
    String::from(word)
}

pub fn encode(response: &ChatResponse, ledger: &mut Ledger) -> Result<Value, Error> {
    let mut said = MessageFields::default();
    for (at, part) in response.parts.iter().enumerate() {
        let pointer = format!("/result/payload/content_parts/{at}");
        said.add(part, Purpose::Show, &pointer, ledger)?;
    }
    let ext = &response.ext;
    let mut message = Map::new();
    said.put("", &mut message);
    if let Some(rest) = ext.value(OWN, "message").and_then(Value::as_object) {
        Ext::of(OWN, rest.clone()).restore(OWN, &mut message);
    }
    if ext.note(OWN, "$content").is_none() {
        message.entry("content").or_insert_with(|| json!(""));
    }
    constant_field::put(&mut message, OWN, ext, "message", "role", "assistant");
    let mut map = Map::new();
    let time = response.created.and_then(|seconds| created_at(seconds, ext));
    if response.created.is_some() && time.is_none() {
        ledger.dropped("/result/payload/created", "the date is after the year 9999");
    }
    for (key, value) in [("model", response.model.clone()), ("created_at", time)] {
        if let Some(value) = value {
            map.insert(String::from(key), json!(value));
        }
    }
    map.insert(String::from("message"), Value::Object(message));
    if let Some(reason) = &response.finish_reason {
        map.insert(String::from("done_reason"), json!(finish_word(reason, ledger)));
    }
    if let Some(usage) = &response.usage {
        usage::put(usage, &mut map);
        usage::book(usage, ledger);
    }
    let mut rest = ext.clone();
    rest.remove(OWN, "message");
    rest.restore(OWN, &mut map);
    constant_field::put(&mut map, OWN, ext, "", "done", true);
    ledger.foreign("/result/payload", ext, OWN);
    if response.id.is_some() {
        ledger.dropped("/result/payload/id", format!("not supported by {OWN}"));
    }
    book_warnings(response, ledger);
    Ok(Value::Object(map))
}
