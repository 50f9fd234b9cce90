//! Parts, written.

use std::collections::BTreeMap;

use ir::{
    Action, Error, Ledger, Map, Media, MediaSource, Origin, Part, PartBody, Reasoning, ToolCall, ToolOutcome,
    ToolResult,
};
use serde_json::{Value, json};

use crate::gemini::OWN;
use crate::particulars;

/// Whether reasoning goes to the model again or is shown to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Replay,
    Show,
}

/// Names of the calls by their ids: a result must say the name, and other dialects say only the id.
pub(super) type Names = BTreeMap<String, String>;

pub(super) fn encode(
    part: &Part,
    purpose: Purpose,
    names: &Names,
    pointer: &str,
    ledger: &mut Ledger,
) -> Result<Vec<Value>, Error> {
    let mut after = Vec::new();
    let map = match &part.body {
        PartBody::Text(text) => Some(object(json!({"text": text}))),
        PartBody::Refusal(text) => {
            ledger.note(pointer, Action::Replaced, format!("{OWN} has refusals as text"));
            Some(object(json!({"text": text})))
        }
        PartBody::Media(media) => Some(encode_media(media, pointer, ledger)?),
        PartBody::ToolCall(call) => Some(encode_call(call, part, pointer, ledger)),
        PartBody::ToolResult(result) => {
            Some(encode_result(result, part, names, &mut after, pointer, ledger)?)
        }
        PartBody::Reasoning(reasoning) => encode_reasoning(reasoning, purpose, pointer, ledger),
        PartBody::Unknown { dialect, raw } if dialect == OWN.as_str() => return Ok(vec![raw.clone()]),
        PartBody::Unknown { .. } => {
            ledger.dropped(pointer, format!("{OWN} has no word for it"));
            None
        }
    };
    if part.cache.is_some() {
        ledger.dropped(
            format!("{pointer}/cache"),
            format!("{OWN} caches on its own terms"),
        );
    }
    ledger.foreign(pointer, &part.ext, OWN);
    let Some(mut map) = map else { return Ok(Vec::new()) };
    part.ext.restore(OWN, &mut map);
    after.insert(0, Value::Object(map));
    Ok(after)
}

fn encode_reasoning(
    reasoning: &Reasoning,
    purpose: Purpose,
    pointer: &str,
    ledger: &mut Ledger,
) -> Option<Map> {
    let own = reasoning.replays_to(&Origin::dialect(OWN));
    if purpose == Purpose::Replay && !own {
        ledger.dropped(pointer, "reasoning is played back only to where it came from");
        return None;
    }
    if reasoning.data.is_some() {
        ledger.dropped(
            format!("{pointer}/data"),
            "what is sealed is only for where it came from",
        );
    }
    let mut map = object(json!({"text": reasoning.text.as_ref()?, "thought": true}));
    match &reasoning.signature {
        Some(signature) if own => {
            map.insert(String::from("thoughtSignature"), json!(signature));
        }
        Some(_) => ledger.dropped(
            format!("{pointer}/signature"),
            "a proof is only for where it came from",
        ),
        None => {}
    }
    Some(map)
}

pub(super) fn encode_call(call: &ToolCall, part: &Part, pointer: &str, ledger: &mut Ledger) -> Map {
    let mut inner = Map::new();
    if part.ext.note(OWN, "$id").is_none() && !call.id.is_empty() {
        inner.insert(String::from("id"), json!(call.id));
    }
    inner.insert(String::from("name"), json!(call.name));
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
    if part.ext.note(OWN, "$args").is_none() {
        inner.insert(String::from("args"), arguments);
    }
    object(json!({"functionCall": inner}))
}

/// A result is an object here. Text that is none is wrapped; media follows as parts of its own.
fn encode_result(
    result: &ToolResult,
    part: &Part,
    names: &Names,
    after: &mut Vec<Value>,
    pointer: &str,
    ledger: &mut Ledger,
) -> Result<Map, Error> {
    let text = result.joined_text();
    let word = if result.outcome == ToolOutcome::Success {
        "result"
    } else {
        "error"
    };
    let response = part.ext.value(OWN, "$response").cloned().unwrap_or_else(|| {
        let parsed = serde_json::from_str::<Value>(&text).ok().filter(Value::is_object);
        parsed
            .filter(|_| word == "result")
            .unwrap_or_else(|| json!({word: text}))
    });
    for (at, inner) in result.content.iter().enumerate() {
        if let PartBody::Media(media) = &inner.body {
            let pointer = format!("{pointer}/content/{at}");
            after.push(Value::Object(encode_media(media, &pointer, ledger)?));
            ledger.note(pointer, Action::Merged, "media of a result follows it");
        }
    }
    let name = result
        .name
        .clone()
        .or_else(|| names.get(&result.call_id).cloned());
    let mut inner = Map::new();
    if part.ext.note(OWN, "$id").is_none() && !result.call_id.is_empty() {
        inner.insert(String::from("id"), json!(result.call_id));
    }
    inner.insert(
        String::from("name"),
        json!(name.unwrap_or_else(|| result.call_id.clone())),
    );
    inner.insert(String::from("response"), response);
    Ok(object(json!({"functionResponse": inner})))
}

fn encode_media(media: &Media, pointer: &str, ledger: &mut Ledger) -> Result<Map, Error> {
    let mime = media.mime_or_sniffed();
    let (key, mut inner) = match &media.source {
        MediaSource::Inline(data) => ("inlineData", object(json!({"data": data.as_str()}))),
        MediaSource::Remote(url) => ("fileData", object(json!({"fileUri": url}))),
        _ => return Err(particulars::unresolved(media, pointer, OWN)),
    };
    if let Some(mime) = mime {
        inner.insert(String::from("mimeType"), json!(mime));
    }
    particulars::book(media, pointer, OWN, &[], ledger);
    Ok(object(json!({key: inner})))
}

pub(super) fn object(value: Value) -> Map {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
