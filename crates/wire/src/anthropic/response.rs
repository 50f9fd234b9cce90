//! Decodes and encodes a unary response.

use ir::{ChatResponse, Error, Fields, FinishReason, Ledger, Map, Phase};
use serde_json::{Value, json};

use crate::anthropic::block_encode::{Purpose, encode as encode_block};
use crate::anthropic::{OWN, block_decode, usage};
use crate::openai_chat::book_warnings;
use crate::{constant_field, error_body};

pub fn decode(body: Value) -> Result<ChatResponse, Error> {
    if let Some(error) = error_body::from_value(OWN, &body, Phase::BeforeFirstByte, None) {
        return Err(error);
    }
    let bad = |what: &str| Error::invalid_response(Phase::BeforeFirstByte, format!("the answer {what}"));
    let mut fields = Fields::of(body).ok_or_else(|| bad("is not an object"))?;
    let content = fields.array("content").ok_or_else(|| bad("has no content"))?;
    let mut response = ChatResponse {
        id: fields.string("id"),
        model: fields.string("model"),
        parts: content.into_iter().map(block_decode::decode).collect(),
        ..ChatResponse::default()
    };
    head(&mut fields, &mut response);
    response.finish_reason = fields.string("stop_reason").map(|word| finish_of(&word));
    let usage = fields.object("usage").map(|usage| Value::Object(usage.rest()));
    response.usage = usage.map(|usage| usage::decode(&usage));
    response.ext.extend(OWN, fields.rest());
    Ok(response)
}

fn head(fields: &mut Fields, response: &mut ChatResponse) {
    let ext = &mut response.ext;
    constant_field::take(fields, OWN, ext, "", "type", &json!("message"));
    constant_field::take(fields, OWN, ext, "", "role", &json!("assistant"));
    constant_field::take(fields, OWN, ext, "", "stop_sequence", &Value::Null);
    for (key, known) in [
        ("id", response.id.is_some()),
        ("model", response.model.is_some()),
        ("stop_reason", fields.peek("stop_reason").is_some()),
        ("usage", fields.peek("usage").is_some()),
    ] {
        if !known && fields.peek(key).is_none() {
            constant_field::note_absent(OWN, ext, "", key);
        }
    }
}

pub(super) fn finish_of(word: &str) -> FinishReason {
    match word {
        "end_turn" => FinishReason::Stop,
        "max_tokens" => FinishReason::Length,
        "stop_sequence" => FinishReason::StopSequence,
        "tool_use" => FinishReason::ToolCalls,
        "refusal" => FinishReason::ContentFilter,
        "pause_turn" => FinishReason::Pause,
        other => FinishReason::Other(String::from(other)),
    }
}

pub(super) fn finish_word(reason: &FinishReason) -> &str {
    match reason {
        FinishReason::Stop => "end_turn",
        FinishReason::Length => "max_tokens",
        FinishReason::StopSequence => "stop_sequence",
        FinishReason::ToolCalls => "tool_use",
        FinishReason::ContentFilter => "refusal",
        FinishReason::Pause => "pause_turn",
        FinishReason::Other(word) => word,
    }
}

pub fn encode(response: &ChatResponse, ledger: &mut Ledger) -> Result<Value, Error> {
    let mut content = Vec::new();
    for (at, part) in response.parts.iter().enumerate() {
        let pointer = format!("/result/payload/content_parts/{at}");
        content.extend(encode_block(part, Purpose::Show, &pointer, ledger)?);
    }
    let mut map = Map::new();
    if let Some(id) = &response.id {
        map.insert(String::from("id"), json!(id));
    }
    if let Some(model) = &response.model {
        map.insert(String::from("model"), json!(model));
    }
    map.insert(String::from("content"), Value::Array(content));
    if let Some(reason) = &response.finish_reason {
        map.insert(String::from("stop_reason"), json!(finish_word(reason)));
    }
    if let Some(usage) = &response.usage {
        map.insert(String::from("usage"), usage::encode(Some(usage)));
        usage::book(usage, ledger);
    }
    response.ext.restore(OWN, &mut map);
    let ext = &response.ext;
    constant_field::put(&mut map, OWN, ext, "", "id", "");
    constant_field::put(&mut map, OWN, ext, "", "type", "message");
    constant_field::put(&mut map, OWN, ext, "", "role", "assistant");
    constant_field::put(&mut map, OWN, ext, "", "model", "");
    constant_field::put(&mut map, OWN, ext, "", "stop_reason", Value::Null);
    constant_field::put(&mut map, OWN, ext, "", "stop_sequence", Value::Null);
    constant_field::put(&mut map, OWN, ext, "", "usage", usage::encode(None));
    ledger.foreign("/result/payload", ext, OWN);
    if response.created.is_some() {
        ledger.dropped("/result/payload/created", format!("not supported by {OWN}"));
    }
    book_warnings(response, ledger);
    Ok(Value::Object(map))
}
