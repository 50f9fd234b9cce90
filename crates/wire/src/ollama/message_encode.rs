//! Encodes messages. A message has one text, one list of images and one list of calls; tool results become
//! separate messages before the rest of the turn.

use std::collections::BTreeMap;

use ir::media::{MimeTrust, sniff};
use ir::{
    Action, Error, Ledger, Map, Media, MediaKind, MediaSource, Message, Part, PartBody, ReasoningOrigin,
    Role, ToolCall, ToolOutcome, ToolResult,
};
use serde_json::{Value, json};

use crate::losses::{arguments_as_object, record_message_losses, record_proof_losses};
use crate::ollama::OWN;
use crate::{call_id, media_losses};

/// Tool names by call id: a result has the name, and other dialects have only the id.
pub(super) type Names = BTreeMap<String, String>;

/// Whether reasoning is sent back to the model in a request or returned to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Replay,
    Show,
}

/// The content of a message, sorted into the fields of this dialect.
#[derive(Debug, Default)]
pub(super) struct MessageFields {
    texts: Vec<String>,
    thinking: Option<String>,
    images: Vec<Value>,
    calls: Vec<Value>,
}

pub(super) fn encode(
    message: &Message,
    names: &Names,
    pointer: &str,
    out: &mut Vec<Value>,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    for (at, part) in message.parts.iter().enumerate() {
        if let PartBody::ToolResult(result) = &part.body {
            let pointer = format!("{pointer}/content_parts/{at}");
            out.push(encode_result(message, part, result, names, &pointer, ledger)?);
        }
    }
    let is_result = |part: &Part| matches!(part.body, PartBody::ToolResult(_));
    let only_results = !message.parts.is_empty() && message.parts.iter().all(is_result);
    record_message_losses(OWN, pointer, message, ledger);
    ledger.foreign(pointer, &message.ext, OWN);
    if only_results || message.role == Role::Tool {
        return Ok(());
    }
    let mut said = MessageFields::default();
    for (at, part) in message.parts.iter().enumerate() {
        if !is_result(part) {
            let pointer = format!("{pointer}/content_parts/{at}");
            said.add(part, Purpose::Replay, &pointer, ledger)?;
        }
    }
    if said.texts.len() > 1 {
        ledger.note(
            pointer,
            Action::Merged,
            format!("a message of {OWN} has one text"),
        );
    }
    let role = match message.role {
        Role::System => "system",
        Role::Developer => {
            let pointer = format!("{pointer}/role");
            let reason = format!("{OWN} has no developer role");
            ledger.changed(pointer, Action::Renamed, "developer", "system", reason);
            "system"
        }
        Role::Assistant => "assistant",
        Role::User | Role::Tool => "user",
    };
    let mut map = Map::from_iter([(String::from("role"), json!(role))]);
    said.put("\n", &mut map);
    finish(message, &mut map);
    out.push(Value::Object(map));
    Ok(())
}

/// Restores this dialect's extra fields, and writes the mandatory text.
fn finish(message: &Message, map: &mut Map) {
    message.ext.restore(OWN, map);
    if message.ext.note(OWN, "$content").is_none() {
        map.entry("content").or_insert_with(|| json!(""));
    }
}

fn encode_result(
    message: &Message,
    part: &Part,
    result: &ToolResult,
    names: &Names,
    pointer: &str,
    ledger: &mut Ledger,
) -> Result<Value, Error> {
    let mut map = Map::from_iter([(String::from("role"), json!("tool"))]);
    let mut said = MessageFields::default();
    for (at, inner) in result.content.iter().enumerate() {
        said.add(inner, Purpose::Replay, &format!("{pointer}/content/{at}"), ledger)?;
    }
    if said.texts.len() > 1 {
        ledger.note(
            format!("{pointer}/content"),
            Action::Merged,
            "a result has one text",
        );
    }
    said.put("\n", &mut map);
    if part.ext.note(OWN, "$tool_name").is_none()
        && let Some(name) = result.name.as_ref().or_else(|| names.get(&result.call_id))
    {
        map.insert(String::from("tool_name"), json!(name));
    }
    call_id::put(&mut map, "tool_call_id", OWN, &result.call_id, &part.ext);
    if result.outcome != ToolOutcome::Success {
        ledger.dropped(format!("{pointer}/outcome"), format!("not supported by {OWN}"));
    }
    if part.cache.is_some() {
        ledger.dropped(format!("{pointer}/cache"), format!("not supported by {OWN}"));
    }
    ledger.foreign(pointer, &part.ext, OWN);
    if message.role == Role::Tool {
        finish(message, &mut map);
    } else {
        map.entry("content").or_insert_with(|| json!(""));
    }
    Ok(Value::Object(map))
}

impl MessageFields {
    pub(super) fn add(
        &mut self,
        part: &Part,
        purpose: Purpose,
        pointer: &str,
        ledger: &mut Ledger,
    ) -> Result<(), Error> {
        if part.cache.is_some() {
            ledger.dropped(format!("{pointer}/cache"), format!("not supported by {OWN}"));
        }
        ledger.foreign(pointer, &part.ext, OWN);
        match &part.body {
            PartBody::Text(text) => self.texts.push(text.clone()),
            PartBody::Refusal(text) => {
                ledger.note(
                    pointer,
                    Action::Replaced,
                    format!("{OWN} encodes refusals as text"),
                );
                self.texts.push(text.clone());
            }
            PartBody::Media(media) => self.images.extend(encode_picture(media, pointer, ledger)?),
            PartBody::ToolCall(call) => self.calls.push(encode_call(call, part, pointer, ledger)),
            PartBody::Unknown { dialect, raw } if dialect == OWN.as_str() => self.calls.push(raw.clone()),
            PartBody::Reasoning(reasoning) => {
                let own = reasoning.replays_to(&ReasoningOrigin::dialect(OWN));
                if purpose == Purpose::Replay && !own {
                    ledger.dropped(pointer, "reasoning is sent only to its original dialect");
                    return Ok(());
                }
                record_proof_losses(OWN, pointer, reasoning, ledger);
                if let Some(text) = &reasoning.text {
                    self.thinking.get_or_insert_default().push_str(text);
                }
            }
            PartBody::ToolResult(_) | PartBody::Unknown { .. } => {
                ledger.dropped(pointer, format!("not supported by {OWN}"));
            }
        }
        Ok(())
    }

    /// Writes the fields, with texts joined by `border`.
    pub(super) fn put(self, border: &str, map: &mut Map) {
        let mut put = |key: &str, value: Value| {
            map.insert(String::from(key), value);
        };
        if !self.texts.is_empty() {
            put("content", json!(self.texts.join(border)));
        }
        if let Some(text) = self.thinking {
            put("thinking", json!(text));
        }
        if !self.images.is_empty() {
            put("images", Value::Array(self.images));
        }
        if !self.calls.is_empty() {
            put("tool_calls", Value::Array(self.calls));
        }
    }
}

/// Only images are supported, and only as bytes.
pub(super) fn encode_picture(
    media: &Media,
    pointer: &str,
    ledger: &mut Ledger,
) -> Result<Option<Value>, Error> {
    if media.kind != MediaKind::Image {
        ledger.dropped(pointer, format!("{OWN} does not accept {}", media.kind.as_str()));
        return Ok(None);
    }
    let MediaSource::Inline(data) = &media.source else {
        return Err(media_losses::unresolved(media, pointer, OWN));
    };
    if let Some(mime) = media
        .mime
        .as_ref()
        .filter(|_| media.mime_trust != MimeTrust::Inferred)
    {
        let pointer = format!("{pointer}/mime");
        if sniff(&data.head()) == Some(mime.as_str()) {
            ledger.note(pointer, Action::Merged, "the type is detected from the bytes");
        } else {
            ledger.dropped(
                pointer,
                format!("{OWN} detects the type from the bytes, which do not show it"),
            );
        }
    }
    media_losses::book(media, pointer, OWN, &[], ledger);
    Ok(Some(json!(data.as_str())))
}

/// Arguments must be an object in this dialect. Other text is wrapped, so that the model still receives it.
pub(super) fn encode_call(call: &ToolCall, part: &Part, pointer: &str, ledger: &mut Ledger) -> Value {
    let mut map = Map::new();
    call_id::put(&mut map, "id", OWN, &call.id, &part.ext);
    let arguments = arguments_as_object(call, pointer, ledger);
    let mut inner = Map::from_iter([(String::from("name"), json!(call.name))]);
    let absent = part.ext.note(OWN, "$arguments").is_some() && arguments == json!({});
    if !absent {
        inner.insert(String::from("arguments"), arguments);
    }
    map.insert(String::from("function"), Value::Object(inner));
    part.ext.restore(OWN, &mut map);
    Value::Object(map)
}
