//! Encodes content blocks.

use ir::media::MediaKind;
use ir::{
    Action, Error, Ledger, Map, Media, MediaSource, Part, PartBody, Reasoning, ReasoningOrigin, ToolCall,
    ToolOutcome, ToolResult,
};
use serde_json::{Value, json};

use crate::anthropic::OWN;
use crate::losses::{arguments_as_object, record_losses};
use crate::media_losses;
use crate::openai_chat::cache_control;

/// Whether reasoning is sent back to the model in a request or returned to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Replay,
    Show,
}

/// One block; `None` if the dialect does not support it, which is recorded as a loss.
pub(super) fn encode(
    part: &Part,
    purpose: Purpose,
    pointer: &str,
    ledger: &mut Ledger,
) -> Result<Option<Value>, Error> {
    let map = match &part.body {
        PartBody::Text(text) => Some(object(json!({"type": "text", "text": text}))),
        PartBody::Refusal(text) => {
            ledger.note(
                pointer,
                Action::Replaced,
                format!("{OWN} encodes refusals as text"),
            );
            Some(object(json!({"type": "text", "text": text})))
        }
        PartBody::Media(media) => encode_media(media, pointer, ledger)?,
        PartBody::ToolCall(call) => Some(encode_call(call, pointer, ledger)),
        PartBody::ToolResult(result) => Some(encode_result(result, part, pointer, ledger)?),
        PartBody::Reasoning(reasoning) => encode_reasoning(reasoning, purpose, pointer, ledger),
        PartBody::Unknown { dialect, raw } if dialect == OWN.as_str() => return Ok(Some(raw.clone())),
        PartBody::Unknown { .. } => {
            ledger.dropped(pointer, format!("not supported by {OWN}"));
            None
        }
    };
    let Some(mut map) = map else { return Ok(None) };
    if let Some(cache) = &part.cache {
        map.insert(String::from("cache_control"), cache_control(cache));
    }
    part.ext.restore(OWN, &mut map);
    ledger.foreign(pointer, &part.ext, OWN);
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
    if let (None, Some(data), true) = (&reasoning.text, &reasoning.data, own) {
        return Some(object(json!({"type": "redacted_thinking", "data": data})));
    }
    let Some(text) = &reasoning.text else {
        ledger.dropped(pointer, "sealed reasoning is sent only to its original dialect");
        return None;
    };
    let mut map = object(json!({"type": "thinking", "thinking": text}));
    match &reasoning.signature {
        Some(signature) if own => {
            map.insert(String::from("signature"), json!(signature));
        }
        Some(_) => ledger.dropped(
            format!("{pointer}/signature"),
            "a signature is sent only to its original dialect",
        ),
        None => {}
    }
    record_losses(
        OWN,
        pointer,
        &[("id", reasoning.id.is_some()), ("data", reasoning.data.is_some())],
        ledger,
    );
    Some(map)
}

/// Arguments must be an object in this dialect. Other text is wrapped, so that the model still receives it.
fn encode_call(call: &ToolCall, pointer: &str, ledger: &mut Ledger) -> Map {
    let input = arguments_as_object(call, pointer, ledger);
    object(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input}))
}

fn encode_result(result: &ToolResult, part: &Part, pointer: &str, ledger: &mut Ledger) -> Result<Map, Error> {
    let mut map = object(json!({"type": "tool_result", "tool_use_id": result.call_id}));
    let blocks = part.ext.note(OWN, "$content") == Some("blocks");
    match result.content.as_slice() {
        [] if !blocks => {}
        [only] if !blocks && only.plain_text().is_some() => {
            map.insert(String::from("content"), json!(only.plain_text()));
        }
        list => {
            let mut content = Vec::new();
            for (at, inner) in list.iter().enumerate() {
                content.extend(encode(
                    inner,
                    Purpose::Replay,
                    &format!("{pointer}/content/{at}"),
                    ledger,
                )?);
            }
            map.insert(String::from("content"), Value::Array(content));
        }
    }
    match result.outcome {
        ToolOutcome::Success => {}
        ToolOutcome::Error => {
            map.insert(String::from("is_error"), Value::Bool(true));
        }
        ToolOutcome::Denied | ToolOutcome::Halted => {
            map.insert(String::from("is_error"), Value::Bool(true));
            ledger.note(
                format!("{pointer}/outcome"),
                Action::Replaced,
                format!("{OWN} supports only the error outcome"),
            );
        }
    }
    Ok(map)
}

fn encode_media(media: &Media, pointer: &str, ledger: &mut Ledger) -> Result<Option<Map>, Error> {
    let word = match media.kind {
        MediaKind::Image => "image",
        MediaKind::Document | MediaKind::Other => "document",
        MediaKind::Audio | MediaKind::Video => {
            ledger.dropped(pointer, format!("{OWN} does not accept {}", media.kind.as_str()));
            return Ok(None);
        }
    };
    let source = match &media.source {
        MediaSource::Inline(data) => {
            let mime = media
                .mime_or_sniffed()
                .unwrap_or_else(|| String::from("application/octet-stream"));
            let as_text = media.ext.note(OWN, "$source") == Some("text")
                || (media.kind == MediaKind::Document && mime.starts_with("text/"));
            let text = as_text
                .then(|| data.decode().ok().and_then(|bytes| String::from_utf8(bytes).ok()))
                .flatten();
            match text {
                Some(text) => json!({"type": "text", "media_type": mime, "data": text}),
                None => json!({"type": "base64", "media_type": mime, "data": data.as_str()}),
            }
        }
        MediaSource::Remote(url) => json!({"type": "url", "url": url}),
        MediaSource::ProviderFile { backend, id } if backend == OWN.as_str() => {
            json!({"type": "file", "file_id": id})
        }
        _ => return Err(media_losses::unresolved(media, pointer, OWN)),
    };
    let mut map = object(json!({"type": word, "source": source}));
    let carried: &[&str] = if word == "document" {
        &["hints/filename"]
    } else {
        &[]
    };
    if let (Some(title), "document") = (&media.hints.filename, word) {
        map.insert(String::from("title"), json!(title));
    }
    media_losses::book(media, pointer, OWN, carried, ledger);
    Ok(Some(map))
}

pub(super) fn object(value: Value) -> Map {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
