//! Decodes and encodes a unary response. Its items become parts; parts of the same message item are noted.

use ir::{ChatResponse, Error, Fields, FinishReason, Ledger, Map, Part, PartBody, Phase, Role};
use serde_json::{Value, json};

use crate::openai_chat::{book_warnings, usage};
use crate::openai_responses::item_encode::{EncodedPart, Purpose, encode as encode_part};
use crate::openai_responses::{OWN, content, item_decode};
use crate::{constant_field, error_body};

/// Note on a part that begins a message item, and on the parts of the same item.
const MESSAGE: &str = "$message";

pub fn decode(body: Value) -> Result<ChatResponse, Error> {
    if body.get("error").is_some_and(|error| !error.is_null())
        && let Some(error) = error_body::from_value(OWN, &body, Phase::BeforeFirstByte, None)
    {
        return Err(error);
    }
    let bad = |what: &str| Error::invalid_response(Phase::BeforeFirstByte, format!("the answer {what}"));
    let mut fields = Fields::of(body).ok_or_else(|| bad("is not an object"))?;
    if fields.peek_str("status") == Some("failed") {
        return Err(bad("failed without an error"));
    }
    let output = fields.array("output").ok_or_else(|| bad("has no output"))?;
    let mut response = ChatResponse {
        parts: output.into_iter().flat_map(item_parts).collect(),
        ..ChatResponse::default()
    };
    head(&mut fields, &mut response);
    Ok(response)
}

/// All fields except the output.
pub(super) fn head(fields: &mut Fields, response: &mut ChatResponse) {
    response.id = fields.string("id");
    response.model = fields.string("model");
    response.created = fields.u64("created_at");
    let reason = finish_of(fields, &response.parts);
    let (status, details) = status_of(reason.as_ref());
    response.finish_reason = reason;
    let ext = &mut response.ext;
    constant_field::take(fields, OWN, ext, "", "object", &json!("response"));
    constant_field::take(fields, OWN, ext, "", "status", &status);
    constant_field::take(fields, OWN, ext, "", "incomplete_details", &details);
    constant_field::take(fields, OWN, ext, "", "error", &Value::Null);
    for (key, known) in [
        ("id", response.id.is_some()),
        ("model", response.model.is_some()),
        ("created_at", response.created.is_some()),
    ] {
        if !known && fields.peek(key).is_none() {
            constant_field::note_absent(OWN, ext, "", key);
        }
    }
    let usage = fields.object("usage").map(|usage| Value::Object(usage.rest()));
    response.usage = usage.map(|value| usage::decode(&value, OWN));
    response.ext.extend(OWN, std::mem::take(fields).rest());
}

/// The parts of one output item.
pub(super) fn item_parts(item: Value) -> Vec<Part> {
    let content = item
        .get("content")
        .and_then(Value::as_array)
        .filter(|list| !list.is_empty());
    let (Some("message"), Some(list)) = (item.get("type").and_then(Value::as_str), content) else {
        return vec![item_decode::decode(item)];
    };
    let mut parts: Vec<Part> = list
        .iter()
        .map(|part| content::decode(part.clone(), Role::Assistant))
        .collect();
    let mut head = item;
    if let Some(map) = head.as_object_mut() {
        map.shift_remove("content");
    }
    for (at, part) in parts.iter_mut().enumerate() {
        part.ext
            .set(OWN, MESSAGE, if at == 0 { head.take() } else { json!("same") });
    }
    parts
}

fn finish_of(fields: &Fields, parts: &[Part]) -> Option<FinishReason> {
    match fields.peek_str("status") {
        Some("completed") | None => {
            let called = parts
                .iter()
                .any(|part| matches!(part.body, PartBody::ToolCall(_)));
            Some(if called {
                FinishReason::ToolCalls
            } else {
                FinishReason::Stop
            })
        }
        Some("incomplete") => {
            let reason = fields
                .peek("incomplete_details")
                .and_then(|details| details.get("reason")?.as_str());
            Some(match reason {
                Some("max_output_tokens") => FinishReason::Length,
                Some("content_filter") => FinishReason::ContentFilter,
                other => FinishReason::Other(String::from(other.unwrap_or("incomplete"))),
            })
        }
        Some(other) => Some(FinishReason::Other(String::from(other))),
    }
}

/// `status` and `incomplete_details` for a finish reason.
fn status_of(reason: Option<&FinishReason>) -> (Value, Value) {
    match reason {
        Some(FinishReason::Length) => (json!("incomplete"), json!({"reason": "max_output_tokens"})),
        Some(FinishReason::ContentFilter) => (json!("incomplete"), json!({"reason": "content_filter"})),
        Some(FinishReason::Other(word)) => (json!("incomplete"), json!({"reason": word})),
        _ => (json!("completed"), Value::Null),
    }
}

pub fn encode(response: &ChatResponse, ledger: &mut Ledger) -> Result<Value, Error> {
    let mut output: Vec<Value> = Vec::new();
    let mut open = false;
    for (at, part) in response.parts.iter().enumerate() {
        let pointer = format!("/result/payload/content_parts/{at}");
        match encode_part(part, Role::Assistant, Purpose::Show, &pointer, ledger)? {
            EncodedPart::Nothing => {}
            EncodedPart::Item(item) => {
                output.push(item);
                open = false;
            }
            EncodedPart::Content(content) => {
                let note = part.ext.value(OWN, MESSAGE);
                let joins = open && note.is_none_or(|note| note == "same");
                if !joins {
                    output.push(new_message(note, output.len()));
                    open = true;
                }
                if let Some(list) = output.last_mut().and_then(|item| item["content"].as_array_mut()) {
                    list.push(content);
                }
            }
        }
    }
    let (status, details) = status_of(response.finish_reason.as_ref());
    let mut map = Map::new();
    for (key, value) in [
        ("id", response.id.clone().map(Value::from)),
        ("created_at", response.created.map(Value::from)),
        ("model", response.model.clone().map(Value::from)),
        (
            "usage",
            response
                .usage
                .as_ref()
                .map(|usage| usage::encode(usage, &usage::RESPONSES)),
        ),
    ] {
        if let Some(value) = value {
            map.insert(String::from(key), value);
        }
    }
    map.insert(String::from("output"), Value::Array(output));
    let ext = &response.ext;
    ext.restore(OWN, &mut map);
    for (key, value) in [
        ("id", json!("")),
        ("object", json!("response")),
        ("created_at", json!(0)),
        ("status", status),
        ("error", Value::Null),
        ("incomplete_details", details),
        ("model", json!("")),
    ] {
        constant_field::put(&mut map, OWN, ext, "", key, value);
    }
    ledger.foreign("/result/payload", ext, OWN);
    book_warnings(response, ledger);
    Ok(Value::Object(map))
}

fn new_message(note: Option<&Value>, at: usize) -> Value {
    let mut item = match note {
        Some(Value::Object(head)) => Value::Object(head.clone()),
        _ => {
            json!({"type": "message", "id": format!("msg_{at}"), "status": "completed", "role": "assistant"})
        }
    };
    item["content"] = json!([]);
    item
}
