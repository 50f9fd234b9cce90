//! The fields of a message other than content: id, role, time, tool calls, and the call of a result. The
//! format of the content (a string, null, a list) is noted, so that it is restored.

use ir::{Dialect, Fields, Ledger, Map, Message, Part, PartBody, Role, ToolCall, ToolOutcome, ToolResult};
use serde_json::{Value, json};

use crate::media::{ConversionContext, ConversionError};
use crate::messages::outcome;

/// How a dialect encodes the content of a message.
pub(super) struct ContentCodec {
    pub(super) own: Dialect,
    /// Key of the list of parts, if the content is an object.
    pub(super) list_key: Option<&'static str>,
    /// Rejects fields that the content must not contain.
    pub(super) check: fn(&Value) -> Result<(), ConversionError>,
    pub(super) read: fn(Value) -> Result<Part, ConversionError>,
    /// `None` for a part that the dialect does not support.
    pub(super) write: Write,
}

type Write = fn(&Part, &str, &ConversionContext<'_>, &mut Ledger) -> Result<Option<Value>, ConversionError>;

const FORM: &str = "$content";
const FALLBACK: &str = "text_fallback";
/// Note: an entry of the list of calls that could not be decoded as a call.
const IN_CALLS: &str = "$in_calls";
const NO_TYPE: &str = "$no_type";

pub(super) fn decode(content: &ContentCodec, value: Value) -> Result<Message, ConversionError> {
    let mut fields =
        Fields::of(value).ok_or_else(|| ConversionError::malformed("", "a message must be an object"))?;
    let role = fields.take("role").unwrap_or_default();
    let role: Role = serde_json::from_value(role).map_err(|_| {
        ConversionError::malformed(
            "/role",
            "`role` must be system, developer, user, assistant or tool",
        )
    })?;
    let mut message = Message::new(role, Vec::new());
    message.parts = read_content(content, &mut fields, &mut message)?;
    message.name = fields.string("name");
    if role == Role::Tool {
        let call_id = fields.string("tool_call_id");
        let call_id =
            call_id.ok_or_else(|| ConversionError::malformed("", "a tool message has no `tool_call_id`"))?;
        let parts = std::mem::take(&mut message.parts);
        let result = ToolResult {
            call_id,
            name: message.name.clone(),
            outcome: outcome::read(&parts),
            content: parts,
        };
        message.parts = vec![Part::from(PartBody::ToolResult(result))];
        message.content = ir::Content::Parts;
    } else if fields
        .peek("tool_calls")
        .and_then(Value::as_array)
        .is_some_and(|list| !list.is_empty())
    {
        let calls = fields.array("tool_calls").unwrap_or_default();
        message
            .parts
            .extend(calls.into_iter().map(|call| read_call(content.own, call)));
    }
    message.id = fields.string("id");
    message.created_at = fields.u64("created_at");
    message.metadata = fields.object("metadata").map(Fields::rest);
    message.ext.extend(content.own, fields.rest());
    Ok(message)
}

fn read_content(
    content: &ContentCodec,
    fields: &mut Fields,
    message: &mut Message,
) -> Result<Vec<Part>, ConversionError> {
    let value = fields.take("content");
    if let Some(value) = &value {
        (content.check)(value).map_err(|refusal| refusal.under("/content"))?;
    }
    let (form, parts) = match value {
        None => ("absent", Vec::new()),
        Some(Value::Null) => {
            message.content = ir::Content::Null;
            ("null", Vec::new())
        }
        Some(Value::String(text)) => {
            message.content = ir::Content::Text;
            ("text", vec![Part::text(text)])
        }
        Some(Value::Array(list)) => ("list", read_list(content, list, "/content")?),
        Some(Value::Object(map)) => read_object(content, map, fields)?,
        Some(_) => {
            return Err(ConversionError::malformed(
                "/content",
                "`content` must be a string, a list or null",
            ));
        }
    };
    // The default format needs no note.
    let usual = match form {
        "text" => true,
        "null" => message.role != Role::Tool,
        "list" => message.role != Role::Tool && content.list_key.is_none() && !parts.is_empty(),
        "object" => message.role != Role::Tool && !parts.is_empty(),
        _ => false,
    };
    if !usual {
        message.ext.set(content.own, FORM, form);
    }
    Ok(parts)
}

/// `{"blocks": [..], "text_fallback": ".."}` or `{"text": ".."}`, if the dialect has them.
fn read_object(
    content: &ContentCodec,
    map: Map,
    fields: &mut Fields,
) -> Result<(&'static str, Vec<Part>), ConversionError> {
    let bad = || ConversionError::malformed("/content", "`content` must be a string, a list or null");
    let key = content.list_key.ok_or_else(bad)?;
    let mut inner = Fields::new(map);
    let (mut form, parts) = match (inner.array(key), inner.peek_str("text").map(String::from)) {
        (Some(list), _) => ("object", read_list(content, list, &format!("/content/{key}"))?),
        (None, Some(text)) => {
            inner.take("text");
            ("text-object", vec![Part::text(text)])
        }
        (None, None) => return Err(bad()),
    };
    if form == "object" {
        match inner.peek_str(FALLBACK) {
            Some(text) if text == fallback(&parts) => {
                inner.take(FALLBACK);
            }
            None if inner.peek(FALLBACK).is_none() => form = "object-alone",
            _ => {}
        }
    }
    fields.keep("content", inner);
    Ok((form, parts))
}

fn read_list(content: &ContentCodec, list: Vec<Value>, pointer: &str) -> Result<Vec<Part>, ConversionError> {
    let read =
        |(at, value)| (content.read)(value).map_err(|refusal| refusal.under(&format!("{pointer}/{at}")));
    list.into_iter().enumerate().map(read).collect()
}

/// One call. An entry without an id, a name or text arguments is preserved as is.
fn read_call(own: Dialect, value: Value) -> Part {
    let read = |value: Value| {
        let mut call = Fields::of(value)?;
        let id = call.string("id")?;
        let mut function = call.object("function")?;
        let name = function.string("name")?;
        let arguments = function.string("arguments")?;
        let mut part = Part::from(PartBody::ToolCall(ToolCall::new(id, name, arguments)));
        match call.peek("type") {
            Some(word) if word == "function" => {
                call.take("type");
            }
            Some(_) => {}
            None => part.ext.set(own, NO_TYPE, true),
        }
        call.keep("function", function);
        part.ext.extend(own, call.rest());
        Some(part)
    };
    read(value.clone()).unwrap_or_else(|| {
        let dialect = String::from(own.as_str());
        let mut part = Part::from(PartBody::Unknown { dialect, raw: value });
        part.ext.set(own, IN_CALLS, true);
        part
    })
}

/// Encodes a message. Call results among other parts become separate messages before it.
pub(super) fn encode(
    content: &ContentCodec,
    message: &Message,
    pointer: &str,
    setting: &ConversionContext<'_>,
    ledger: &mut Ledger,
    out: &mut Vec<Value>,
) -> Result<(), ConversionError> {
    let own_result = message.role == Role::Tool && message.parts.len() == 1;
    let mut parts = Vec::new();
    let mut calls = Vec::new();
    for (at, part) in message.parts.iter().enumerate() {
        let pointer = format!("{pointer}/content_parts/{at}");
        match &part.body {
            PartBody::ToolResult(result) => {
                let alone = Message::new(Role::Tool, Vec::new());
                let around = if own_result { message } else { &alone };
                let written = write_result(content, around, result, &pointer, setting, ledger)?;
                book_part(part, &pointer, content.own, ledger);
                out.push(written);
            }
            PartBody::ToolCall(call) => {
                calls.push(write_call(content.own, part, call));
                book_part(part, &pointer, content.own, ledger);
            }
            PartBody::Unknown { dialect, raw } if dialect == content.own.as_str() => {
                if part.ext.value(content.own, IN_CALLS).is_some() {
                    calls.push(raw.clone());
                } else {
                    parts.push((part, pointer));
                }
            }
            _ => parts.push((part, pointer)),
        }
    }
    let only_results = parts.is_empty() && calls.is_empty() && !message.parts.is_empty();
    if only_results {
        return Ok(());
    }
    let mut map = head(message);
    let values = write_parts(content, &parts, setting, ledger)?;
    let plain = plain_text(content.own, parts.iter().map(|(part, _)| *part));
    let value = form_content(content, message, values, plain, !calls.is_empty());
    hang(content, message, value, &mut map);
    if !calls.is_empty() {
        map.insert(String::from("tool_calls"), Value::Array(calls));
    }
    finish(content, message, pointer, &mut map, ledger);
    add_fallback(content, message, &parts, &mut map);
    out.push(Value::Object(map));
    Ok(())
}

fn write_result(
    content: &ContentCodec,
    message: &Message,
    result: &ToolResult,
    pointer: &str,
    setting: &ConversionContext<'_>,
    ledger: &mut Ledger,
) -> Result<Value, ConversionError> {
    let mut map = head(message);
    map.insert(String::from("tool_call_id"), json!(result.call_id));
    if let Some(name) = &result.name {
        map.entry("name").or_insert_with(|| json!(name));
    }
    let stated = outcome::read(&result.content) == result.outcome || result.outcome == ToolOutcome::Success;
    let wrapped;
    let inner = if stated {
        &result.content
    } else {
        wrapped = wrap(result);
        &wrapped
    };
    let place = |at| format!("{pointer}/content/{at}");
    let parts: Vec<(&Part, String)> = inner
        .iter()
        .enumerate()
        .map(|(at, part)| (part, place(at)))
        .collect();
    let values = write_parts(content, &parts, setting, ledger)?;
    let plain = plain_text(content.own, inner.iter());
    let value = match message.ext.note(content.own, FORM) {
        None => plain.map_or_else(|| wrap_list(content, values), |text| json!(text)),
        Some(_) => form_content(content, message, values, plain, false).unwrap_or_default(),
    };
    let absent = message.ext.note(content.own, FORM) == Some("absent") && inner.is_empty();
    hang(content, message, (!absent).then_some(value), &mut map);
    finish(content, message, pointer, &mut map, ledger);
    add_fallback(content, message, &parts, &mut map);
    Ok(Value::Object(map))
}

/// Replaces the first text by a JSON object with the outcome of the call.
fn wrap(result: &ToolResult) -> Vec<Part> {
    let mut parts = result.content.clone();
    let first = parts.iter_mut().find_map(|part| match &mut part.body {
        PartBody::Text(text) => Some(text),
        _ => None,
    });
    match first {
        Some(text) => *text = outcome::wrap(result.outcome, text),
        None => parts.insert(0, Part::text(outcome::wrap(result.outcome, ""))),
    }
    parts
}

fn write_call(own: Dialect, part: &Part, call: &ToolCall) -> Value {
    let mut map = Map::new();
    map.insert(String::from("id"), json!(call.id));
    let typed = [NO_TYPE, "type"]
        .iter()
        .any(|key| part.ext.value(own, key).is_some());
    if !typed {
        map.insert(String::from("type"), json!("function"));
    }
    let function = json!({"name": call.name, "arguments": call.arguments_raw});
    map.insert(String::from("function"), function);
    part.ext.restore(own, &mut map);
    Value::Object(map)
}

fn write_parts(
    content: &ContentCodec,
    parts: &[(&Part, String)],
    setting: &ConversionContext<'_>,
    ledger: &mut Ledger,
) -> Result<Vec<Value>, ConversionError> {
    let mut values = Vec::new();
    for (part, pointer) in parts {
        match &part.body {
            PartBody::Unknown { dialect, raw } if dialect == content.own.as_str() => values.push(raw.clone()),
            _ => match (content.write)(part, pointer, setting, ledger)? {
                Some(value) => values.push(value),
                None => {
                    ledger.dropped(pointer.as_str(), format!("not supported by {}", content.own));
                    continue;
                }
            },
        }
        book_part(part, pointer, content.own, ledger);
    }
    Ok(values)
}

/// The content in the noted format, or in the simplest format without loss.
fn form_content(
    content: &ContentCodec,
    message: &Message,
    values: Vec<Value>,
    plain: Option<String>,
    calls: bool,
) -> Option<Value> {
    let was_string = message.content == ir::Content::Text;
    match (message.ext.note(content.own, FORM), plain) {
        (Some("absent"), _) if values.is_empty() => None,
        (Some("null"), _) if values.is_empty() => Some(Value::Null),
        (Some("list"), _) => Some(Value::Array(values)),
        (Some("text-object"), Some(text)) => Some(json!({"text": text})),
        (Some("text"), Some(text)) => Some(json!(text)),
        (None, Some(text)) if was_string => Some(json!(text)),
        (None, _) if values.is_empty() && (calls || message.content == ir::Content::Null) => {
            Some(Value::Null)
        }
        _ => Some(wrap_list(content, values)),
    }
}

fn wrap_list(content: &ContentCodec, values: Vec<Value>) -> Value {
    match content.list_key {
        Some(key) => json!({key: values}),
        None => Value::Array(values),
    }
}

fn hang(content: &ContentCodec, message: &Message, value: Option<Value>, map: &mut Map) {
    if let Some(value) = value {
        map.insert(String::from("content"), value);
    } else if message.ext.value(content.own, "content").is_some() {
        map.insert(String::from("content"), Value::Object(Map::new()));
    }
}

/// A list inside an object gets a fallback text, unless the source had none.
fn add_fallback(content: &ContentCodec, message: &Message, parts: &[(&Part, String)], map: &mut Map) {
    let alone = message.ext.note(content.own, FORM) == Some("object-alone");
    let Some(key) = content.list_key.filter(|_| !alone) else {
        return;
    };
    if let Some(Value::Object(inner)) = map.get_mut("content")
        && inner.contains_key(key)
        && !inner.contains_key(FALLBACK)
    {
        let texts: Vec<Part> = parts.iter().map(|(part, _)| Part::clone(part)).collect();
        inner.insert(String::from(FALLBACK), json!(fallback(&texts)));
    }
}

/// A plain text for the parts.
fn fallback(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match &part.body {
        PartBody::Text(text) => Some(text.clone()),
        PartBody::Media(media) => {
            let text = media.text_fallback.clone();
            Some(text.unwrap_or_else(|| format!("[{}]", media.kind.as_str())))
        }
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The text, if the only part is plain text.
fn plain_text<'a>(own: Dialect, mut parts: impl Iterator<Item = &'a Part>) -> Option<String> {
    let only = parts.next().filter(|part| part.ext.get(own).is_none())?;
    let text = only.as_text().map(String::from);
    text.filter(|_| parts.next().is_none())
}

fn head(message: &Message) -> Map {
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| {
        if !value.is_null() {
            map.insert(String::from(key), value);
        }
    };
    put("id", json!(message.id));
    put("role", json!(message.role));
    put("name", json!(message.name));
    put("created_at", json!(message.created_at));
    map
}

fn finish(content: &ContentCodec, message: &Message, pointer: &str, map: &mut Map, ledger: &mut Ledger) {
    if let Some(metadata) = &message.metadata {
        map.insert(String::from("metadata"), Value::Object(metadata.clone()));
    }
    message.ext.restore(content.own, map);
    ledger.foreign(pointer, &message.ext, content.own);
    if message.cache.is_some() {
        ledger.dropped(
            format!("{pointer}/cache"),
            format!("not supported by {}", content.own),
        );
    }
}

fn book_part(part: &Part, pointer: &str, own: Dialect, ledger: &mut Ledger) {
    if part.cache.is_some() {
        ledger.dropped(format!("{pointer}/cache"), format!("not supported by {own}"));
    }
    ledger.foreign(pointer, &part.ext, own);
}
