//! Messages, written. Content is one string; pictures stand beside it, calls and reasoning too.

use std::collections::BTreeMap;

use ir::{
    Action, Error, Ext, Ledger, Map, Media, MediaKind, MediaSource, Message, Origin, Part, PartBody, Role,
    ToolOutcome, ToolResult,
};
use serde_json::{Value, json};

use crate::ollama::OWN;
use crate::particulars;

/// Whether reasoning goes to the model again or is shown to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Replay,
    Show,
}

pub(super) type Names = BTreeMap<String, String>;

pub(super) fn encode(
    message: &Message,
    names: &Names,
    pointer: &str,
    out: &mut Vec<Value>,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    let mut rest = Vec::new();
    for (at, part) in message.parts.iter().enumerate() {
        match &part.body {
            PartBody::ToolResult(result) => {
                let pointer = format!("{pointer}/content_parts/{at}");
                ledger.foreign(&pointer, &part.ext, OWN);
                out.push(encode_result(message, result, names, &pointer, ledger));
            }
            _ => rest.push(part.clone()),
        }
    }
    if rest.is_empty() && !message.parts.is_empty() {
        return Ok(());
    }
    let role = match message.role {
        Role::System => "system",
        Role::Developer => {
            let pointer = format!("{pointer}/role");
            ledger.changed(
                pointer,
                Action::Replaced,
                "developer",
                "system",
                format!("{OWN} knows no developer"),
            );
            "system"
        }
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let mut map = Map::new();
    map.insert(String::from("role"), json!(role));
    put_parts(
        &rest,
        Purpose::Replay,
        &format!("{pointer}/content_parts"),
        &mut map,
        ledger,
    )?;
    book_message(message, pointer, ledger);
    message.ext.restore(OWN, &mut map);
    put_content_default(&message.ext, &mut map);
    out.push(Value::Object(map));
    Ok(())
}

/// A message has content, if only an empty one.
pub(super) fn put_content_default(ext: &Ext, map: &mut Map) {
    if !map.contains_key("content") && ext.note(OWN, "$content").is_none() {
        map.insert(String::from("content"), json!(""));
    }
}

fn book_message(message: &Message, pointer: &str, ledger: &mut Ledger) {
    let lost = [
        ("id", message.id.is_some()),
        ("name", message.name.is_some()),
        ("created_at", message.created_at.is_some()),
        ("cache", message.cache.is_some()),
        ("metadata", message.metadata.is_some()),
    ];
    for (key, _) in lost.iter().filter(|(_, there)| *there) {
        ledger.dropped(format!("{pointer}/{key}"), format!("{OWN} has no word for it"));
    }
    ledger.foreign(pointer, &message.ext, OWN);
}

fn encode_result(
    message: &Message,
    result: &ToolResult,
    names: &Names,
    pointer: &str,
    ledger: &mut Ledger,
) -> Value {
    let own = message.role == Role::Tool;
    let mut map = Map::new();
    map.insert(String::from("role"), json!("tool"));
    map.insert(String::from("content"), json!(result.joined_text()));
    let known = || {
        names
            .get(&result.call_id)
            .filter(|_| message.ext.note(OWN, "$name").is_none())
            .cloned()
    };
    if let Some(name) = result.name.clone().or_else(known) {
        map.insert(String::from("tool_name"), json!(name));
    }
    if message.ext.note(OWN, "$id").is_none() && !result.call_id.is_empty() {
        map.insert(String::from("tool_call_id"), json!(result.call_id));
    }
    for (at, part) in result.content.iter().enumerate() {
        let pointer = format!("{pointer}/content/{at}");
        if part.as_text().is_none() {
            ledger.dropped(&pointer, format!("a result is text in {OWN}"));
        }
        book_part(part, &pointer, ledger);
    }
    if result.outcome != ToolOutcome::Success {
        ledger.dropped(format!("{pointer}/outcome"), format!("{OWN} has no word for it"));
    }
    if own {
        book_message(message, pointer, ledger);
        message.ext.restore(OWN, &mut map);
    }
    Value::Object(map)
}

fn book_part(part: &Part, pointer: &str, ledger: &mut Ledger) {
    if part.cache.is_some() {
        ledger.dropped(
            format!("{pointer}/cache"),
            format!("{OWN} caches on its own terms"),
        );
    }
    ledger.foreign(pointer, &part.ext, OWN);
}

/// The parts of one message: text joined, the rest in fields of its own.
pub(super) fn put_parts(
    parts: &[Part],
    purpose: Purpose,
    pointer: &str,
    map: &mut Map,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    let mut texts: Vec<&str> = Vec::new();
    let mut images = Vec::new();
    let mut calls = Vec::new();
    let mut thoughts = String::new();
    for (at, part) in parts.iter().enumerate() {
        let pointer = format!("{pointer}/{at}");
        book_part(part, &pointer, ledger);
        match &part.body {
            PartBody::Text(text) => texts.push(text),
            PartBody::Refusal(text) => {
                ledger.note(&pointer, Action::Replaced, format!("{OWN} has refusals as text"));
                texts.push(text);
            }
            PartBody::Media(media) => images.extend(image(media, &pointer, ledger)?),
            PartBody::ToolCall(_) => calls.push(encode_call(part, &pointer, ledger)),
            PartBody::Reasoning(reasoning) => {
                if purpose == Purpose::Replay && !reasoning.replays_to(&Origin::dialect(OWN)) {
                    ledger.dropped(&pointer, "reasoning is played back only to where it came from");
                    continue;
                }
                thoughts.push_str(reasoning.text.as_deref().unwrap_or_default());
                for (key, there) in [
                    ("signature", reasoning.signature.is_some()),
                    ("data", reasoning.data.is_some()),
                ] {
                    if there {
                        ledger.dropped(format!("{pointer}/{key}"), format!("{OWN} has no word for it"));
                    }
                }
            }
            PartBody::Unknown { dialect, raw } if dialect == OWN.as_str() => calls.push(raw.clone()),
            PartBody::Unknown { .. } | PartBody::ToolResult(_) => {
                ledger.dropped(&pointer, format!("{OWN} has no word for it"));
            }
        }
    }
    if texts.len() > 1 && purpose == Purpose::Replay {
        ledger.note(pointer, Action::Merged, "texts of one message are one text");
    }
    if !thoughts.is_empty() {
        map.insert(String::from("thinking"), json!(thoughts));
    }
    if !texts.is_empty() {
        let between = if purpose == Purpose::Replay { "\n" } else { "" };
        map.insert(String::from("content"), json!(texts.join(between)));
    }
    if !images.is_empty() {
        map.insert(String::from("images"), Value::Array(images));
    }
    if !calls.is_empty() {
        map.insert(String::from("tool_calls"), Value::Array(calls));
    }
    Ok(())
}

fn image(media: &Media, pointer: &str, ledger: &mut Ledger) -> Result<Option<Value>, Error> {
    if media.kind != MediaKind::Image {
        ledger.dropped(pointer, format!("{OWN} takes no {}", media.kind.as_str()));
        return Ok(None);
    }
    let MediaSource::Inline(data) = &media.source else {
        return Err(particulars::unresolved(media, pointer, OWN));
    };
    if media.mime.is_some() {
        ledger.note(
            format!("{pointer}/mime"),
            Action::Merged,
            "the bytes say their type",
        );
    }
    particulars::book(media, pointer, OWN, &[], ledger);
    Ok(Some(json!(data.as_str())))
}

pub(super) fn encode_call(part: &Part, pointer: &str, ledger: &mut Ledger) -> Value {
    let PartBody::ToolCall(call) = &part.body else {
        return Value::Null;
    };
    let arguments = match &call.arguments {
        Some(value) => value.clone(),
        None => {
            let wrapped = json!({"arguments_raw": call.arguments_raw});
            let pointer = format!("{pointer}/arguments_raw");
            ledger.changed(
                pointer,
                Action::Replaced,
                json!(call.arguments_raw),
                wrapped.clone(),
                "not JSON",
            );
            wrapped
        }
    };
    let mut map = Map::new();
    if part.ext.note(OWN, "$id").is_none() && !call.id.is_empty() {
        map.insert(String::from("id"), json!(call.id));
    }
    map.insert(
        String::from("function"),
        json!({"name": call.name, "arguments": arguments}),
    );
    part.ext.restore(OWN, &mut map);
    Value::Object(map)
}
