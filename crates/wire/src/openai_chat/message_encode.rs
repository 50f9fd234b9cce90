//! Encodes messages. Tool results become separate messages before the rest of the turn.

use ir::{
    Action, Error, Ledger, Map, Message, Part, PartBody, ReasoningOrigin, Role, ToolCall, ToolOutcome,
    ToolResult,
};
use serde_json::{Value, json};

use crate::losses::{record_losses, record_proof_losses};
use crate::openai_chat::OWN;
use crate::openai_chat::content::{cache_control, encode_media, restore};

pub(super) fn encode(
    message: &Message,
    pointer: &str,
    out: &mut Vec<Value>,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    for (at, part) in message.parts.iter().enumerate() {
        if let PartBody::ToolResult(result) = &part.body {
            let pointer = format!("{pointer}/content_parts/{at}");
            encode_result(message, part, result, &pointer, out, ledger)?;
        }
    }
    let rest = || {
        message
            .parts
            .iter()
            .enumerate()
            .filter(|(_, part)| !matches!(part.body, PartBody::ToolResult(_)))
    };
    if message.role == Role::Tool && !message.parts.is_empty() {
        return Ok(());
    }
    if rest().next().is_none() && !message.parts.is_empty() {
        // The message is omitted, and with it its fields other than the results.
        book_message(message, pointer, ledger);
        ledger.foreign(pointer, &message.ext, OWN);
        return Ok(());
    }
    let mut map = Map::new();
    map.insert(String::from("role"), json!(role_word(message)));
    if let Some(name) = &message.name {
        map.insert(String::from("name"), json!(name));
    }
    let mut content = Vec::new();
    let mut calls = Vec::new();
    for (at, part) in rest() {
        let pointer = format!("{pointer}/content_parts/{at}");
        match &part.body {
            PartBody::ToolCall(call) if message.role == Role::Assistant => {
                calls.push(encode_call(call, part, &pointer, ledger));
            }
            PartBody::Unknown { dialect, raw } if dialect == OWN.as_str() && is_call(part) => {
                calls.push(raw.clone());
            }
            PartBody::Reasoning(_) => reasoning(part, &pointer, &mut map, &mut content, ledger),
            PartBody::Refusal(text) if message.ext.note(OWN, "$content") != Some("parts") => {
                map.insert(String::from("refusal"), json!(text));
                ledger.foreign(&pointer, &part.ext, OWN);
            }
            _ => content.extend(encode_part(part, &pointer, ledger)?),
        }
    }
    put_content(message, content, &mut map);
    if !calls.is_empty() {
        map.insert(String::from("tool_calls"), Value::Array(calls));
    }
    book_message(message, pointer, ledger);
    restore(&message.ext, OWN, pointer, &mut map, ledger);
    out.push(Value::Object(map));
    Ok(())
}

fn role_word(message: &Message) -> &str {
    match message.role {
        Role::System => "system",
        Role::Developer => "developer",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => message.ext.note(OWN, "$role").unwrap_or("tool"),
    }
}

/// The noted format, or the simplest: a string for one plain text, a list for anything else.
fn put_content(message: &Message, mut content: Vec<Value>, map: &mut Map) {
    let value = match message.ext.note(OWN, "$content") {
        Some("parts") => Value::Array(content),
        _ if !content.is_empty() => match content.as_slice() {
            [only] if is_plain(only) => content
                .first_mut()
                .map(|part| part["text"].take())
                .unwrap_or_default(),
            _ => Value::Array(content),
        },
        Some("absent") => return,
        Some("null") => Value::Null,
        Some(text) => json!(text),
        None if message.role == Role::Assistant => Value::Null,
        None => json!(""),
    };
    map.entry("content").or_insert(value);
}

fn is_plain(part: &Value) -> bool {
    part["type"] == "text" && part.as_object().is_some_and(|map| map.len() == 2)
}

/// Records the message fields that this dialect does not support.
fn book_message(message: &Message, pointer: &str, ledger: &mut Ledger) {
    let lost = [
        ("id", message.id.is_some()),
        ("created_at", message.created_at.is_some()),
        ("cache", message.cache.is_some()),
        ("metadata", message.metadata.is_some()),
    ];
    record_losses(OWN, pointer, &lost, ledger);
}

/// Reasoning is returned only to its original dialect, under its original key.
fn reasoning(part: &Part, pointer: &str, map: &mut Map, content: &mut Vec<Value>, ledger: &mut Ledger) {
    let PartBody::Reasoning(reasoning) = &part.body else {
        return;
    };
    if !reasoning.replays_to(&ReasoningOrigin::dialect(OWN)) {
        ledger.dropped(pointer, "reasoning is sent only to its original dialect");
        return;
    }
    let text = reasoning.text.clone().unwrap_or_default();
    match part.ext.note(OWN, "$key") {
        Some("thinking") => {
            content.push(json!({"type": "thinking", "thinking": [{"type": "text", "text": text}]}));
        }
        key => {
            let key = key.unwrap_or("reasoning_content");
            match map.get_mut(key) {
                Some(Value::String(before)) => before.push_str(&text),
                _ => {
                    map.insert(String::from(key), json!(text));
                }
            }
        }
    }
    record_proof_losses(OWN, pointer, reasoning, ledger);
}

/// One content part; `None` if the dialect does not support it, which is recorded as a loss.
fn encode_part(part: &Part, pointer: &str, ledger: &mut Ledger) -> Result<Option<Value>, Error> {
    let mut map = match &part.body {
        PartBody::Text(text) => object(json!({"type": "text", "text": text})),
        PartBody::Refusal(text) => object(json!({"type": "refusal", "refusal": text})),
        PartBody::Media(media) => encode_media(media, pointer, OWN, ledger)?,
        PartBody::Unknown { dialect, raw } if dialect == OWN.as_str() => return Ok(Some(raw.clone())),
        _ => {
            ledger.dropped(pointer, format!("not supported by {OWN}"));
            return Ok(None);
        }
    };
    if let Some(cache) = &part.cache {
        if part.ext.value(OWN, "$cache_control").is_some() {
            map.insert(String::from("cache_control"), cache_control(cache));
        } else {
            ledger.dropped(format!("{pointer}/cache"), format!("{OWN} caches automatically"));
        }
    }
    restore(&part.ext, OWN, pointer, &mut map, ledger);
    Ok(Some(Value::Object(map)))
}

/// The result of a call, as a separate message.
fn encode_result(
    message: &Message,
    part: &Part,
    result: &ToolResult,
    pointer: &str,
    out: &mut Vec<Value>,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    let own = message.role == Role::Tool;
    let function = own && message.ext.note(OWN, "$role") == Some("function");
    let mut map = Map::new();
    map.insert(
        String::from("role"),
        json!(if function { "function" } else { "tool" }),
    );
    if !result.call_id.is_empty() || !function {
        map.insert(String::from("tool_call_id"), json!(result.call_id));
    }
    let as_parts = own && message.ext.note(OWN, "$content") == Some("parts");
    let mut content = Vec::new();
    let mut media = Vec::new();
    for (at, inner) in result.content.iter().enumerate() {
        let pointer = format!("{pointer}/content/{at}");
        let encoded = encode_part(inner, &pointer, ledger)?;
        if matches!(inner.body, PartBody::Media(_)) && !as_parts {
            ledger.note(
                pointer,
                Action::Merged,
                "a tool result contains only text; media follows in a user message",
            );
            media.extend(encoded);
        } else {
            content.extend(encoded);
        }
    }
    let single = Message {
        parts: Vec::new(),
        role: Role::Tool,
        ..message.clone()
    };
    let alone = Message::new(Role::Tool, Vec::new());
    put_content(if own { &single } else { &alone }, content, &mut map);
    // The message fields are siblings of its parts.
    let whole = pointer
        .rsplit_once("/content_parts")
        .map_or(pointer, |(head, _)| head);
    if own {
        if let Some(name) = &message.name {
            map.insert(String::from("name"), json!(name));
        }
        book_message(message, whole, ledger);
        restore(&message.ext, OWN, whole, &mut map, ledger);
    }
    book_result(part, result, pointer, ledger);
    out.push(Value::Object(map));
    if !media.is_empty() {
        out.push(json!({"role": "user", "content": media}));
    }
    Ok(())
}

fn book_result(part: &Part, result: &ToolResult, pointer: &str, ledger: &mut Ledger) {
    if result.outcome != ToolOutcome::Success {
        ledger.dropped(format!("{pointer}/outcome"), format!("not supported by {OWN}"));
    }
    if part.cache.is_some() {
        ledger.dropped(format!("{pointer}/cache"), format!("{OWN} caches automatically"));
    }
    // The name is part of the call.
    ledger.foreign(pointer, &part.ext, OWN);
}

/// An entry of the list of calls that could not be decoded as a call.
pub(super) fn is_call(part: &Part) -> bool {
    part.ext.note(OWN, "$in") == Some("tool_calls")
}

/// One tool call in this dialect.
pub(super) fn encode_call(call: &ToolCall, part: &Part, pointer: &str, ledger: &mut Ledger) -> Value {
    let mut map = Map::new();
    if !call.id.is_empty() || part.ext.note(OWN, "$id").is_some() {
        map.insert(String::from("id"), json!(call.id));
    }
    let kind = part.ext.value(OWN, "$type");
    let word = kind.map_or(Some("function"), Value::as_str);
    if let Some(word) = word {
        map.insert(String::from("type"), json!(word));
    }
    let word = word.unwrap_or("function");
    let key = if word == "function" { "arguments" } else { "input" };
    let mut inner = json!({"name": call.name});
    let arguments = match part.ext.note(OWN, "$arguments") {
        Some("value") => call.arguments.clone(),
        Some("absent") if call.arguments_raw.is_empty() => None,
        _ => Some(json!(call.arguments_raw)),
    };
    if let (Some(arguments), Some(inner)) = (arguments, inner.as_object_mut()) {
        inner.insert(String::from(key), arguments);
    }
    map.insert(String::from(word), inner);
    restore(&part.ext, OWN, pointer, &mut map, ledger);
    Value::Object(map)
}

fn object(value: Value) -> Map {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
