//! Decodes messages: thinking, text, images and calls become parts in the order in which a model generates
//! them. A call without an id gets a generated one, so that its result can be matched.

use ir::media::{Base64, MimeTrust, sniff};
use ir::{
    Content, Error, Ext, Fields, Media, MediaKind, MediaSource, Message, Part, PartBody, Reasoning,
    ReasoningOrigin, Role, ToolCall, ToolResult,
};
use serde_json::Value;

use crate::call_id::CallIds;
use crate::ollama::OWN;

/// A response has no id; its creation time distinguishes it from others.
pub(super) fn calls_of(created_at: Option<&str>) -> CallIds {
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    CallIds::of_answer(OWN, created_at.map(digits).as_deref())
}

pub(super) fn decode(value: Value, calls: &mut CallIds) -> Result<Message, Error> {
    let mut fields =
        Fields::of(value).ok_or_else(|| Error::invalid_request("a message must be an object"))?;
    let word = fields
        .string("role")
        .ok_or_else(|| Error::invalid_request("a message has no role"))?;
    let role = match word.as_str() {
        "system" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        _ => return Err(Error::invalid_request(format!("unknown role `{word}`"))),
    };
    let mut message = Message::new(role, Vec::new());
    message.parts = parts(&mut fields, &mut message.ext, calls);
    if role == Role::Tool {
        let content = std::mem::take(&mut message.parts);
        message.parts.push(result(&mut fields, content, calls));
    }
    if message.plain_text().is_some() {
        message.content = Content::Text;
    }
    message.ext.extend(OWN, fields.rest());
    Ok(message)
}

fn result(fields: &mut Fields, content: Vec<Part>, calls: &mut CallIds) -> Part {
    let mut ext = Ext::default();
    let name = fields.string("tool_name");
    if name.is_none() {
        ext.set(OWN, "$tool_name", "absent");
    }
    let call_id = calls.result(name.as_deref(), fields.string("tool_call_id"), &mut ext);
    let result = ToolResult {
        call_id,
        name,
        content,
        ..ToolResult::default()
    };
    Part {
        ext,
        ..Part::from(PartBody::ToolResult(result))
    }
}

/// The parts of a message of a request or a response.
pub(super) fn parts(fields: &mut Fields, ext: &mut Ext, calls: &mut CallIds) -> Vec<Part> {
    let mut parts = Vec::new();
    match fields.string("thinking") {
        Some(text) if text.is_empty() => fields.put_back("thinking", Value::String(text)),
        Some(text) => parts.push(Part::from(PartBody::Reasoning(Reasoning::text(
            text,
            ReasoningOrigin::dialect(OWN),
        )))),
        None => {}
    }
    match fields.string("content") {
        Some(text) if !text.is_empty() => parts.push(Part::text(text)),
        Some(_) => {}
        None if fields.peek("content").is_none() => ext.set(OWN, "$content", "absent"),
        None => {}
    }
    match fields.strings("images") {
        Some(list) if list.is_empty() => fields.put_back("images", Value::Array(Vec::new())),
        Some(list) => parts.extend(list.into_iter().map(|data| Part::from(picture(data)))),
        None => {}
    }
    match fields.array("tool_calls") {
        Some(list) if list.is_empty() => fields.put_back("tool_calls", Value::Array(list)),
        Some(list) => parts.extend(list.into_iter().map(|call| decode_call(call, calls))),
        None => {}
    }
    parts
}

/// An image is bare base64; its type is detected from its first bytes.
pub(super) fn picture(data: String) -> Media {
    let data = Base64::from_text(data);
    let mime = sniff(&data.head()).map(String::from);
    let trust = if mime.is_some() {
        MimeTrust::Inferred
    } else {
        MimeTrust::Declared
    };
    let mut media = Media::new(MediaSource::Inline(data), mime).with_kind(MediaKind::Image);
    media.mime_trust = trust;
    media
}

/// One call: `{"function": {"name", "arguments"}}`, and an id from newer servers.
pub(super) fn decode_call(value: Value, calls: &mut CallIds) -> Part {
    let known = |value: &Value| {
        let id = value.get("id").is_none_or(Value::is_string);
        id && value.pointer("/function/name").is_some_and(Value::is_string)
    };
    let (true, Some(mut fields)) = (known(&value), Fields::of(value.clone())) else {
        let mut part = Part::from(PartBody::Unknown {
            dialect: String::from(OWN.as_str()),
            raw: value,
        });
        part.ext.set(OWN, "$in", "tool_calls");
        return part;
    };
    let mut inner = fields.object("function").unwrap_or_default();
    let name = inner.string("name").unwrap_or_default();
    let mut ext = Ext::default();
    let id = calls.call(&name, fields.string("id"), &mut ext);
    let call = match inner.take("arguments") {
        Some(arguments) => ToolCall::from_value(id, name, arguments),
        None => {
            ext.set(OWN, "$arguments", "absent");
            ToolCall::new(id, name, "{}")
        }
    };
    fields.keep("function", inner);
    ext.extend(OWN, fields.rest());
    Part {
        body: PartBody::ToolCall(call),
        cache: None,
        ext,
    }
}
