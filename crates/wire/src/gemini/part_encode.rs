//! Encodes parts.

use std::collections::BTreeMap;

use ir::{
    Action, Error, Ledger, Map, Media, MediaSource, Part, PartBody, Reasoning, ReasoningOrigin, ToolCall,
    ToolOutcome, ToolResult, json_values,
};
use serde_json::{Value, json};

use crate::gemini::OWN;
use crate::gemini::part_decode::outcome_of;
use crate::losses::arguments_as_object;
use crate::{call_id, media_losses};

/// Whether reasoning is sent back to the model in a request or returned to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Replay,
    Show,
}

/// Tool names by call id: a result requires the name, and other dialects have only the id.
pub(super) type Names = BTreeMap<String, String>;

/// One part; `None` if the dialect does not support it, which is recorded as a loss.
pub(super) fn encode(
    part: &Part,
    purpose: Purpose,
    names: &Names,
    pointer: &str,
    ledger: &mut Ledger,
) -> Result<Option<Value>, Error> {
    let map = match &part.body {
        PartBody::Text(text) => Some(object(json!({"text": text}))),
        PartBody::Refusal(text) => {
            ledger.note(
                pointer,
                Action::Replaced,
                format!("{OWN} encodes refusals as text"),
            );
            Some(object(json!({"text": text})))
        }
        PartBody::Media(media) => Some(encode_media(media, pointer, ledger)?),
        PartBody::ToolCall(call) => Some(encode_call(call, part, pointer, ledger)),
        PartBody::ToolResult(result) => Some(encode_result(result, part, names, pointer, ledger)?),
        PartBody::Reasoning(reasoning) => encode_reasoning(reasoning, purpose, pointer, ledger),
        PartBody::Unknown { dialect, raw } if dialect == OWN.as_str() => return Ok(Some(raw.clone())),
        PartBody::Unknown { .. } => {
            ledger.dropped(pointer, format!("not supported by {OWN}"));
            None
        }
    };
    if part.cache.is_some() {
        ledger.dropped(format!("{pointer}/cache"), format!("{OWN} caches automatically"));
    }
    ledger.foreign(pointer, &part.ext, OWN);
    let Some(mut map) = map else { return Ok(None) };
    part.ext.restore(OWN, &mut map);
    Ok(Some(Value::Object(map)))
}

fn encode_reasoning(
    reasoning: &Reasoning,
    purpose: Purpose,
    pointer: &str,
    ledger: &mut Ledger,
) -> Option<Map> {
    let own = reasoning.replays_to(&ReasoningOrigin::dialect(OWN));
    if purpose == Purpose::Replay && !own {
        ledger.dropped(pointer, "reasoning is sent only to its original dialect");
        return None;
    }
    if reasoning.data.is_some() {
        ledger.dropped(
            format!("{pointer}/data"),
            "sealed reasoning is sent only to its original dialect",
        );
    }
    let mut map = object(json!({"text": reasoning.text.as_ref()?, "thought": true}));
    match &reasoning.signature {
        Some(signature) if own => {
            map.insert(String::from("thoughtSignature"), json!(signature));
        }
        Some(_) => ledger.dropped(
            format!("{pointer}/signature"),
            "a signature is sent only to its original dialect",
        ),
        None => {}
    }
    Some(map)
}

/// Arguments must be an object in this dialect. Other text is wrapped, so that the model still receives it.
fn encode_call(call: &ToolCall, part: &Part, pointer: &str, ledger: &mut Ledger) -> Map {
    let mut inner = Map::new();
    call_id::put(&mut inner, "id", OWN, &call.id, &part.ext);
    inner.insert(String::from("name"), json!(call.name));
    let arguments = arguments_as_object(call, pointer, ledger);
    let absent = part.ext.note(OWN, "$args").is_some() && arguments == json!({});
    if !absent {
        inner.insert(String::from("args"), arguments);
    }
    object(json!({"functionCall": inner}))
}

/// A result must be an object: the function's own, or its text under the conventional key.
fn encode_result(
    result: &ToolResult,
    part: &Part,
    names: &Names,
    pointer: &str,
    ledger: &mut Ledger,
) -> Result<Map, Error> {
    let texts = result.content.iter().filter(|part| part.as_text().is_some());
    if texts.count() > 1 {
        ledger.note(
            format!("{pointer}/content"),
            Action::Merged,
            "a result has one text",
        );
    }
    let text = result.joined_text();
    let said = (result.outcome, text.clone());
    let noted = part.ext.value(OWN, "$response");
    let response = match noted.filter(|response| outcome_of(response) == said) {
        Some(response) => response.clone(),
        None if result.outcome == ToolOutcome::Success => {
            let small = Some(&text).filter(|text| json_values::within_limit(text.as_bytes()));
            let own = small.and_then(|text| serde_json::from_str::<Value>(text).ok());
            own.filter(Value::is_object)
                .unwrap_or_else(|| json!({"output": text}))
        }
        None => json!({"error": text}),
    };
    if matches!(result.outcome, ToolOutcome::Denied | ToolOutcome::Halted) {
        ledger.note(
            format!("{pointer}/outcome"),
            Action::Replaced,
            format!("{OWN} supports only the error outcome"),
        );
    }
    let mut inner = Map::new();
    call_id::put(&mut inner, "id", OWN, &result.call_id, &part.ext);
    let name = result.name.as_ref().or_else(|| names.get(&result.call_id));
    inner.insert(String::from("name"), json!(name.unwrap_or(&result.call_id)));
    inner.insert(String::from("response"), response);
    let mut parts = Vec::new();
    for (at, part) in result.content.iter().enumerate() {
        let pointer = format!("{pointer}/content/{at}");
        match &part.body {
            PartBody::Text(_) => ledger.foreign(&pointer, &part.ext, OWN),
            PartBody::Media(_) => parts.extend(encode(part, Purpose::Replay, names, &pointer, ledger)?),
            _ => ledger.dropped(pointer, format!("a result of {OWN} contains only text and media")),
        }
    }
    if !parts.is_empty() {
        inner.insert(String::from("parts"), Value::Array(parts));
    }
    Ok(object(json!({"functionResponse": inner})))
}

fn encode_media(media: &Media, pointer: &str, ledger: &mut Ledger) -> Result<Map, Error> {
    let (key, mut inner) = match &media.source {
        MediaSource::Inline(data) => ("inlineData", object(json!({"data": data.as_str()}))),
        MediaSource::Remote(url) => ("fileData", object(json!({"fileUri": url}))),
        MediaSource::ProviderFile { backend, id } if backend == OWN.as_str() => {
            ("fileData", object(json!({"fileUri": id})))
        }
        _ => return Err(media_losses::unresolved(media, pointer, OWN)),
    };
    let mut mime = media
        .mime_or_sniffed()
        .filter(|_| media.ext.note(OWN, "$mimeType").is_none());
    if mime.is_none() && key == "inlineData" && media.ext.note(OWN, "$mimeType").is_none() {
        mime = Some(String::from("application/octet-stream"));
    }
    if let Some(mime) = mime {
        inner.insert(String::from("mimeType"), json!(mime));
    }
    // Only some servers support file names; the others reject them.
    let named = media.ext.value(OWN, "$displayName").is_some();
    if let Some(name) = media.hints.filename.as_ref().filter(|_| named) {
        inner.insert(String::from("displayName"), json!(name));
    }
    let carried: &[&str] = if named {
        &["hints/filename", "mime"]
    } else {
        &["mime"]
    };
    media_losses::book(media, pointer, OWN, carried, ledger);
    Ok(object(json!({key: inner})))
}

pub(super) fn object(value: Value) -> Map {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
