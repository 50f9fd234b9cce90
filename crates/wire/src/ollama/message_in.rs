//! Messages, read. Calls have no ids in older versions; then they get one, so that results find them.

use ir::media::Base64;
use ir::{
    Error, Ext, Fields, Media, MediaKind, MediaSource, Message, Origin, Part, PartBody, Reasoning, Role,
    ToolCall, ToolResult,
};
use serde_json::Value;

use crate::ollama::OWN;

/// Calls that have been seen and wait for their results.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) seen: usize,
    open: Vec<(String, String)>,
}

pub(super) fn decode(value: Value, calls: &mut Calls) -> Result<Message, Error> {
    let mut fields = Fields::of(value).ok_or_else(|| Error::invalid_request("a message is an object"))?;
    let role = match fields.string("role").as_deref() {
        Some("system") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        _ => {
            return Err(Error::invalid_request(
                "a message is of the system, the user, the assistant or a tool",
            ));
        }
    };
    let mut message = Message::new(role, Vec::new());
    if role == Role::Tool {
        let text = fields.string("content");
        let Some(text) = text else {
            return Err(Error::invalid_request("a tool's message has no `content`"));
        };
        let name = fields.string("tool_name");
        if name.is_none() {
            message.ext.set(OWN, "$name", "absent");
        }
        let call_id = fields.string("tool_call_id").unwrap_or_else(|| {
            message.ext.set(OWN, "$id", "absent");
            let word = name.clone().unwrap_or_default();
            let at = calls
                .open
                .iter()
                .position(|(known, _)| *known == word || word.is_empty());
            at.map_or(word, |at| calls.open.remove(at).1)
        });
        let content = vec![Part::text(text)];
        let result = ToolResult {
            call_id,
            name,
            content,
            ..ToolResult::default()
        };
        message.parts.push(Part::from(PartBody::ToolResult(result)));
    } else {
        message.parts = parts(&mut fields, &mut message.ext, calls);
    }
    message.ext.extend(OWN, fields.rest());
    Ok(message)
}

/// Reasoning, text, pictures and calls of a message, of a request or of an answer.
pub(super) fn parts(fields: &mut Fields, ext: &mut Ext, calls: &mut Calls) -> Vec<Part> {
    let mut parts = Vec::new();
    if fields.peek_str("thinking").is_some_and(|text| !text.is_empty())
        && let Some(text) = fields.string("thinking")
    {
        parts.push(Part::from(PartBody::Reasoning(Reasoning::text(
            text,
            Origin::dialect(OWN),
        ))));
    }
    match fields.peek_str("content") {
        Some("") => {
            fields.take("content");
        }
        Some(_) => parts.extend(fields.string("content").map(Part::text)),
        None if fields.peek("content").is_none() => ext.set(OWN, "$content", "absent"),
        None => {}
    }
    match fields.strings("images") {
        Some(list) if list.is_empty() => fields.put_back("images", Value::Array(Vec::new())),
        Some(list) => parts.extend(list.into_iter().map(|data| {
            let source = MediaSource::Inline(Base64::from_text(data));
            Part::from(Media::new(source, None).with_kind(MediaKind::Image))
        })),
        None => {}
    }
    match fields.array("tool_calls") {
        Some(list) if list.is_empty() => fields.put_back("tool_calls", Value::Array(list)),
        Some(list) => parts.extend(list.into_iter().map(|value| call(value, calls))),
        None => {}
    }
    parts
}

pub(super) fn call(value: Value, calls: &mut Calls) -> Part {
    let unknown = |raw| {
        let mut part = Part::from(PartBody::Unknown {
            dialect: String::from(OWN.as_str()),
            raw,
        });
        part.ext.set(OWN, "$in", "tool_calls");
        part
    };
    let name = value
        .pointer("/function/name")
        .and_then(Value::as_str)
        .map(String::from);
    let odd =
        value.get("id").is_some_and(|id| !id.is_string()) || value.pointer("/function/arguments").is_none();
    let (Some(name), false, Some(mut fields)) = (name, odd, Fields::of(value.clone())) else {
        return unknown(value);
    };
    let mut inner = fields.object("function").unwrap_or_default();
    inner.take("name");
    let mut ext = Ext::default();
    let id = fields.string("id").unwrap_or_else(|| {
        ext.set(OWN, "$id", "absent");
        format!("call_{}_{name}", calls.seen)
    });
    calls.seen += 1;
    calls.open.push((name.clone(), id.clone()));
    let arguments = inner.take("arguments").unwrap_or_default();
    fields.keep("function", inner);
    ext.extend(OWN, fields.rest());
    Part {
        body: PartBody::ToolCall(ToolCall::from_value(id, name, arguments)),
        cache: None,
        ext,
    }
}
