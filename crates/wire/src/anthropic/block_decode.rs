//! Decodes content blocks.

use ir::media::Base64;
use ir::{
    Ext, Fields, Media, MediaKind, MediaSource, Part, PartBody, Reasoning, ReasoningForm, ReasoningOrigin,
    ToolCall, ToolOutcome, ToolResult,
};
use serde_json::Value;

use crate::anthropic::OWN;
use crate::openai_chat::cache_hint;

pub(super) fn decode(value: Value) -> Part {
    let unknown = |raw: Value| {
        Part::from(PartBody::Unknown {
            dialect: String::from(OWN.as_str()),
            raw,
        })
    };
    let Some(mut fields) = Fields::of(value.clone()) else {
        return unknown(value);
    };
    let mut ext = Ext::default();
    let kind = fields.string("type").unwrap_or_default();
    let body = match kind.as_str() {
        "text" => fields.string("text").map(PartBody::Text),
        "image" | "document" => media(&mut fields, &kind).map(|media| PartBody::Media(Box::new(media))),
        "tool_use" => call(&mut fields),
        "tool_result" => result(&mut fields, &mut ext),
        "thinking" => fields.string("thinking").map(|text| {
            let signature = fields.string("signature");
            let reasoning = Reasoning {
                signature,
                ..Reasoning::text(text, ReasoningOrigin::dialect(OWN))
            };
            PartBody::Reasoning(reasoning)
        }),
        "redacted_thinking" => fields
            .string("data")
            .map(|data| PartBody::Reasoning(sealed(data))),
        _ => None,
    };
    let Some(body) = body else { return unknown(value) };
    let mut part = Part {
        body,
        cache: None,
        ext,
    };
    if let Some(hint) = fields.peek("cache_control").and_then(cache_hint) {
        part.cache = Some(hint);
        fields.take("cache_control");
    }
    part.ext.extend(OWN, fields.rest());
    part
}

pub(super) fn sealed(data: String) -> Reasoning {
    Reasoning {
        form: ReasoningForm::Redacted,
        data: Some(data),
        origin: Some(ReasoningOrigin::dialect(OWN)),
        ..Reasoning::default()
    }
}

fn call(fields: &mut Fields) -> Option<PartBody> {
    let named = fields.peek_str("name").is_some() && fields.peek("input").is_some();
    let (Some(id), true) = (fields.peek_str("id").map(String::from), named) else {
        return None;
    };
    fields.take("id");
    let name = fields.string("name")?;
    Some(PartBody::ToolCall(ToolCall::from_value(
        id,
        name,
        fields.take("input")?,
    )))
}

fn result(fields: &mut Fields, ext: &mut Ext) -> Option<PartBody> {
    let known = fields
        .peek("content")
        .is_none_or(|content| content.is_string() || content.is_array());
    if !known {
        return None;
    }
    let call_id = fields.string("tool_use_id")?;
    let content = match fields.take("content") {
        Some(Value::String(text)) => vec![Part::text(text)],
        Some(Value::Array(list)) => {
            ext.set(OWN, "$content", "blocks");
            list.into_iter().map(decode).collect()
        }
        _ => Vec::new(),
    };
    let failed = fields.peek("is_error") == Some(&Value::Bool(true));
    if failed {
        fields.take("is_error");
    }
    let outcome = if failed {
        ToolOutcome::Error
    } else {
        ToolOutcome::Success
    };
    Some(PartBody::ToolResult(ToolResult {
        call_id,
        name: None,
        outcome,
        content,
    }))
}

fn media(fields: &mut Fields, word: &str) -> Option<Media> {
    let mut inner = fields.object("source")?;
    let text = |key: &str| inner.peek_str(key).map(String::from);
    let mut media = match inner.peek_str("type")? {
        "base64" => {
            let (mime, data) = (text("media_type")?, text("data")?);
            inner.take("media_type");
            inner.take("data");
            Media::new(MediaSource::Inline(Base64::from_text(data)), Some(mime))
        }
        "text" => {
            let (mime, data) = (text("media_type")?, text("data")?);
            inner.take("media_type");
            inner.take("data");
            let mut media = Media::new(
                MediaSource::Inline(Base64::from_bytes(data.as_bytes())),
                Some(mime),
            );
            media.ext.set(OWN, "$source", "text");
            media
        }
        "url" => {
            let url = text("url")?;
            inner.take("url");
            Media::new(MediaSource::Remote(url), None)
        }
        "file" => {
            let id = text("file_id")?;
            inner.take("file_id");
            Media::new(
                MediaSource::ProviderFile {
                    backend: String::from(OWN.as_str()),
                    id,
                },
                None,
            )
        }
        _ => return None,
    };
    inner.take("type");
    media.kind = MediaKind::from_word(word);
    if word == "document" {
        media.hints.filename = fields.string("title");
    }
    fields.keep("source", inner);
    Some(media)
}
