//! Decodes parts. A call without an id gets a generated one, so that its result can be matched.

use ir::media::Base64;
use ir::{
    Ext, Fields, Media, MediaSource, Part, PartBody, Reasoning, ReasoningOrigin, ToolCall, ToolOutcome,
    ToolResult,
};
use serde_json::Value;

use crate::call_id::CallIds;
use crate::gemini::OWN;

pub(super) fn decode(value: Value, calls: &mut CallIds) -> Part {
    let unknown = |raw: Value| {
        Part::from(PartBody::Unknown {
            dialect: String::from(OWN.as_str()),
            raw,
        })
    };
    let Some(mut fields) = Fields::of(value.clone()) else {
        return unknown(value);
    };
    let kinds = [
        "text",
        "inlineData",
        "fileData",
        "functionCall",
        "functionResponse",
    ];
    let mut present = kinds.iter().filter(|kind| fields.peek(kind).is_some());
    let (Some(kind), None) = (present.next(), present.next()) else {
        return unknown(value);
    };
    let mut ext = Ext::default();
    let body = match *kind {
        "text" => text(&mut fields),
        "inlineData" => media(&mut fields, "inlineData", "data"),
        "fileData" => media(&mut fields, "fileData", "fileUri"),
        "functionCall" => call(&mut fields, &mut ext, calls),
        _ => result(&mut fields, &mut ext, calls),
    };
    let Some(body) = body else { return unknown(value) };
    ext.extend(OWN, fields.rest());
    Part {
        body,
        cache: None,
        ext,
    }
}

fn text(fields: &mut Fields) -> Option<PartBody> {
    let text = fields.string("text")?;
    if fields.peek("thought") != Some(&Value::Bool(true)) {
        return Some(PartBody::Text(text));
    }
    fields.take("thought");
    let signature = fields.string("thoughtSignature");
    Some(PartBody::Reasoning(Reasoning {
        signature,
        ..Reasoning::text(text, ReasoningOrigin::dialect(OWN))
    }))
}

fn media(fields: &mut Fields, key: &str, data: &str) -> Option<PartBody> {
    let inner = fields.peek(key)?.as_object()?;
    let text = inner.get(data)?.as_str()?;
    let mime = match inner.get("mimeType") {
        Some(mime) => Some(String::from(mime.as_str()?)),
        None => None,
    };
    let mut media = Media::new(source(data, text), mime);
    if media.mime.is_none() {
        media.ext.set(OWN, "$mimeType", "absent");
    }
    let mut inner = fields.object(key)?;
    inner.take(data);
    inner.take("mimeType");
    media.hints.filename = inner.string("displayName");
    if media.hints.filename.is_some() {
        media.ext.set(OWN, "$displayName", true);
    }
    fields.keep(key, inner);
    Some(PartBody::Media(Box::new(media)))
}

/// An uploaded file is a provider file; any other URL is remote media.
fn source(key: &str, text: &str) -> MediaSource {
    let web = ["https://", "http://"]
        .iter()
        .any(|scheme| text.starts_with(scheme));
    let uploaded = text.starts_with("https://generativelanguage.googleapis.com/");
    if key == "data" {
        MediaSource::Inline(Base64::from_text(text))
    } else if web && !uploaded {
        MediaSource::Remote(String::from(text))
    } else {
        MediaSource::ProviderFile {
            backend: String::from(OWN.as_str()),
            id: String::from(text),
        }
    }
}

fn call(fields: &mut Fields, ext: &mut Ext, calls: &mut CallIds) -> Option<PartBody> {
    let inner = fields.peek("functionCall")?.as_object()?;
    let name = String::from(inner.get("name")?.as_str()?);
    if inner.get("id").is_some_and(|id| !id.is_string()) {
        return None;
    }
    let mut inner = fields.object("functionCall")?;
    inner.take("name");
    let id = calls.call(&name, inner.string("id"), ext);
    let call = match inner.take("args") {
        Some(arguments) => ToolCall::from_value(id, name, arguments),
        None => {
            ext.set(OWN, "$args", "absent");
            ToolCall::new(id, name, "{}")
        }
    };
    fields.keep("functionCall", inner);
    Some(PartBody::ToolCall(call))
}

fn result(fields: &mut Fields, ext: &mut Ext, calls: &mut CallIds) -> Option<PartBody> {
    let inner = fields.peek("functionResponse")?.as_object()?;
    let name = String::from(inner.get("name")?.as_str()?);
    if inner.get("id").is_some_and(|id| !id.is_string()) || !inner.contains_key("response") {
        return None;
    }
    let mut inner = fields.object("functionResponse")?;
    inner.take("name");
    let call_id = calls.result(Some(&name), inner.string("id"), ext);
    let response = inner.take("response").unwrap_or_default();
    let (outcome, text) = outcome_of(&response);
    ext.set(OWN, "$response", response);
    let mut content = vec![Part::text(text)];
    content.extend(result_media(&mut inner));
    fields.keep("functionResponse", inner);
    Some(PartBody::ToolResult(ToolResult {
        call_id,
        name: Some(name),
        outcome,
        content,
    }))
}

/// The outcome and text of a result. `output`, `result` and `error` are the conventional keys; any other
/// object is passed as the function returned it.
pub(super) fn outcome_of(response: &Value) -> (ToolOutcome, String) {
    let only = response.as_object().filter(|map| map.len() == 1);
    let text = |key: &str| only.and_then(|map| map.get(key)?.as_str()).map(String::from);
    let failed = only.is_some_and(|map| map.contains_key("error"));
    let outcome = if failed {
        ToolOutcome::Error
    } else {
        ToolOutcome::Success
    };
    let said = text("output")
        .or_else(|| text("result"))
        .or_else(|| text("error"));
    (outcome, said.unwrap_or_else(|| response.to_string()))
}

/// Media inside a result, if the list contains nothing else.
fn result_media(inner: &mut Fields) -> Vec<Part> {
    let list = inner.peek("parts").and_then(Value::as_array);
    let Some(list) = list.filter(|list| !list.is_empty()) else {
        return Vec::new();
    };
    let mut none = CallIds::new(OWN);
    let parts: Vec<Part> = list.iter().map(|part| decode(part.clone(), &mut none)).collect();
    if parts.iter().all(|part| matches!(part.body, PartBody::Media(_))) {
        inner.take("parts");
        parts
    } else {
        Vec::new()
    }
}
