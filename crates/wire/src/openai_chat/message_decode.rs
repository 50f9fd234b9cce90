//! Decodes messages. An assistant's text, reasoning, refusal and calls become parts in the order in which a
//! model generates them.

use ir::{
    Content, Dialect, Error, Fields, Message, Part, PartBody, Reasoning, ReasoningOrigin, Role, ToolCall,
    ToolResult,
};
use serde_json::Value;

use crate::openai_chat::OWN;
use crate::openai_chat::content::decode_part;

pub(super) fn decode(value: Value) -> Result<Message, Error> {
    let mut fields =
        Fields::of(value).ok_or_else(|| Error::invalid_request("a message must be an object"))?;
    let word = fields
        .string("role")
        .ok_or_else(|| Error::invalid_request("a message has no role"))?;
    let role = match word.as_str() {
        "system" => Role::System,
        "developer" => Role::Developer,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        _ => return Err(Error::invalid_request(format!("unknown role `{word}`"))),
    };
    if fields
        .peek("content")
        .is_some_and(|content| !(content.is_string() || content.is_array() || content.is_null()))
    {
        return Err(Error::invalid_request(
            "`content` must be a string, a list or null",
        ));
    }
    let mut message = Message::new(role, Vec::new());
    if word == "function" {
        message.ext.set(OWN, "$role", "function");
    }
    match role {
        Role::Assistant => {
            let (parts, _) = assistant(&mut fields, &mut message.ext);
            message.parts = parts;
        }
        Role::Tool => {
            let content = content(&mut fields, &mut message.ext);
            let call_id = fields.string("tool_call_id");
            if call_id.is_none() && word == "tool" {
                return Err(Error::invalid_request("a tool message has no `tool_call_id`"));
            }
            let call_id = call_id.unwrap_or_default();
            let result = ToolResult {
                call_id,
                content,
                ..ToolResult::default()
            };
            message.parts.push(Part::from(PartBody::ToolResult(result)));
        }
        Role::System | Role::Developer | Role::User => {
            message.parts = content(&mut fields, &mut message.ext);
        }
    }
    if message.plain_text().is_some() {
        message.content = Content::Text;
    }
    message.name = fields.string("name");
    message.ext.extend(OWN, fields.rest());
    Ok(message)
}

/// The content in any format; the format is noted unless it is the default one.
fn content(fields: &mut Fields, ext: &mut ir::Ext) -> Vec<Part> {
    match fields.take("content") {
        Some(Value::String(text)) if text.is_empty() => {
            ext.set(OWN, "$content", "");
            Vec::new()
        }
        Some(Value::String(text)) => vec![Part::text(text)],
        Some(Value::Array(list)) => {
            ext.set(OWN, "$content", "parts");
            list.into_iter().map(|part| decode_part(part, OWN)).collect()
        }
        Some(Value::Null) => {
            ext.set(OWN, "$content", "null");
            Vec::new()
        }
        Some(other) => {
            fields.put_back("content", other);
            Vec::new()
        }
        None => {
            ext.set(OWN, "$content", "absent");
            Vec::new()
        }
    }
}

/// The assistant's parts of a message in a request or a response: reasoning, text, refusal, audio, calls.
pub(super) fn assistant(fields: &mut Fields, ext: &mut ir::Ext) -> (Vec<Part>, bool) {
    let mut parts = Vec::new();
    for key in ["reasoning_content", "reasoning"] {
        if let Some(text) = fields.string(key) {
            if text.is_empty() {
                fields.put_back(key, Value::String(text));
                continue;
            }
            let mut part = Part::from(PartBody::Reasoning(Reasoning::text(
                text,
                ReasoningOrigin::dialect(OWN),
            )));
            if key != "reasoning_content" {
                part.ext.set(OWN, "$key", key);
            }
            parts.push(part);
            break;
        }
    }
    let had_content = matches!(fields.peek("content"), Some(Value::String(_) | Value::Array(_)));
    parts.extend(content(fields, ext).into_iter().map(thought));
    if let Some(text) = fields.string("refusal") {
        parts.push(Part::from(PartBody::Refusal(text)));
    }
    let calls = fields.take("tool_calls");
    match calls {
        Some(Value::Array(list)) if !list.is_empty() => {
            parts.extend(list.into_iter().map(|call| decode_call(call, OWN)));
        }
        Some(other) => fields.put_back("tool_calls", other),
        None => {}
    }
    (parts, had_content)
}

/// Mistral encodes reasoning as a content part: `{"type": "thinking", "thinking": [..]}`.
pub(super) fn thought(part: Part) -> Part {
    let PartBody::Unknown { raw, .. } = &part.body else {
        return part;
    };
    let text = thinking_text(raw);
    match text {
        Some(text) => {
            let mut part = Part::from(PartBody::Reasoning(Reasoning::text(
                text,
                ReasoningOrigin::dialect(OWN),
            )));
            part.ext.set(OWN, "$key", "thinking");
            part
        }
        None => part,
    }
}

/// The text of a `thinking` part, if it contains only text.
pub(super) fn thinking_text(raw: &Value) -> Option<String> {
    let plain = |item: &Value| {
        let map = item.as_object()?;
        let text = map.get("text")?.as_str()?;
        (map.len() == 2 && map.get("type")? == "text").then(|| String::from(text))
    };
    let map = raw.as_object()?;
    if map.get("type")? != "thinking" || map.len() != 2 {
        return None;
    }
    match map.get("thinking")?.as_array()?.as_slice() {
        [one] => plain(one),
        _ => None,
    }
}

/// One tool call. A custom tool's input is text and need not be JSON.
pub(crate) fn decode_call(value: Value, own: Dialect) -> Part {
    let unknown = |raw| {
        let mut part = Part::from(PartBody::Unknown {
            dialect: String::from(own.as_str()),
            raw,
        });
        part.ext.set(own, "$in", "tool_calls");
        part
    };
    let Some(mut fields) = Fields::of(value.clone()) else {
        return unknown(value);
    };
    let kind = fields.string("type");
    let word = kind.as_deref().unwrap_or("function");
    let Some(mut inner) = fields.object(word) else {
        return unknown(value);
    };
    let Some(name) = inner.string("name") else {
        return unknown(value);
    };
    let raw = match word {
        "function" => inner.take("arguments"),
        _ => inner.take("input"),
    };
    let mut ext = ir::Ext::default();
    if fields.peek_str("id") == Some("") {
        ext.set(own, "$id", "empty");
    }
    let id = fields.string("id").unwrap_or_default();
    let call = match raw {
        Some(Value::String(raw)) => ToolCall::new(id, name, raw),
        // Some servers send the arguments as a JSON value.
        Some(value) => {
            ext.set(own, "$arguments", "value");
            ToolCall::from_value(id, name, value)
        }
        None => {
            ext.set(own, "$arguments", "absent");
            ToolCall::new(id, name, "")
        }
    };
    match kind.as_deref() {
        Some("function") => {}
        Some(other) => ext.set(own, "$type", other),
        None => ext.set(own, "$type", Value::Null),
    }
    fields.keep(word, inner);
    ext.extend(own, fields.rest());
    Part {
        body: PartBody::ToolCall(call),
        cache: None,
        ext,
    }
}
