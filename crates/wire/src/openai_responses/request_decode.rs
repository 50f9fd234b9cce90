//! Decodes a request. Every item becomes a message; `instructions` become the first.

use ir::{
    ChatRequest, Error, Fields, Generation, Message, PartBody, ReasoningRequest, ResponseFormat, Role,
    ToolChoice, ToolSpec,
};
use serde_json::{Value, json};

use crate::openai_responses::{OWN, content, item_decode};
use crate::turns::ITEM;

pub fn decode(body: Value) -> Result<ChatRequest, Error> {
    let mut fields = Fields::of(body).ok_or_else(|| Error::invalid_request("the body is not an object"))?;
    let mut chat = ChatRequest {
        model: fields.string("model"),
        ..ChatRequest::default()
    };
    if let Some(text) = fields.string("instructions") {
        chat.messages.push(Message::text(Role::System, text));
    }
    match fields.take("input") {
        Some(Value::String(text)) => {
            chat.ext.set(OWN, "$input", "string");
            chat.messages.push(Message::text(Role::User, text));
        }
        Some(Value::Array(list)) => {
            for item in list {
                chat.messages.push(item_message(item)?);
            }
        }
        _ => {
            return Err(Error::invalid_request(
                "`input` must be a string or a list of items",
            ));
        }
    }
    match fields.array("tools") {
        Some(list) if list.is_empty() => fields.put_back("tools", Value::Array(list)),
        Some(list) => chat.tools = list.into_iter().map(tool).collect(),
        None => {}
    }
    chat.tool_choice = fields.peek("tool_choice").and_then(choice);
    if chat.tool_choice.is_some() {
        fields.take("tool_choice");
    }
    chat.parallel_tool_calls = fields.bool("parallel_tool_calls");
    chat.generation = Generation {
        temperature: fields.number("temperature"),
        top_p: fields.number("top_p"),
        max_tokens: fields.u64("max_output_tokens"),
        top_logprobs: fields.u64("top_logprobs"),
        stream: fields.bool("stream"),
        ..Generation::default()
    };
    reasoning(&mut fields, &mut chat);
    format(&mut fields, &mut chat);
    chat.user = fields.string("user");
    chat.metadata = fields.object("metadata").map(Fields::rest);
    chat.ext.extend(OWN, fields.rest());
    Ok(chat)
}

/// One item as a message. The type of a message may be absent.
fn item_message(item: Value) -> Result<Message, Error> {
    if !item.is_object() {
        return Err(Error::invalid_request("an item of `input` must be an object"));
    }
    let kind = item.get("type").and_then(Value::as_str).unwrap_or("message");
    if kind != "message" || !item.get("role").is_some_and(Value::is_string) {
        let part = item_decode::decode(item);
        let role = if matches!(part.body, PartBody::ToolResult(_)) {
            Role::Tool
        } else {
            Role::Assistant
        };
        let mut message = Message::new(role, vec![part]);
        message.ext.set(OWN, ITEM, "item");
        return Ok(message);
    }
    let mut fields = Fields::of(item).unwrap_or_default();
    let role = match fields.string("role").as_deref() {
        Some("system") => Role::System,
        Some("developer") => Role::Developer,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        other => return Err(Error::invalid_request(format!("unknown role {other:?}"))),
    };
    let mut message = match fields.take("content") {
        Some(Value::String(text)) => Message::text(role, text),
        Some(Value::Array(list)) => {
            let parts = list.into_iter().map(|part| content::decode(part, role)).collect();
            let mut message = Message::new(role, parts);
            message.ext.set(OWN, "$content", "parts");
            message
        }
        _ => return Err(Error::invalid_request("`content` must be a string or a list")),
    };
    let typed = fields.string("type").is_some();
    message
        .ext
        .set(OWN, ITEM, if typed { "message" } else { "untyped" });
    item_decode::bookkeeping(&mut fields, &mut message.ext);
    message.ext.extend(OWN, fields.rest());
    Ok(message)
}

fn tool(value: Value) -> ToolSpec {
    let hosted = |value| ToolSpec::hosted(OWN, value);
    let Some(mut fields) = Fields::of(value.clone()) else {
        return hosted(value);
    };
    if fields.string("type").as_deref() != Some("function") {
        return hosted(value);
    }
    let Some(name) = fields.string("name") else {
        return hosted(value);
    };
    let mut tool = ToolSpec {
        name,
        description: fields.string("description"),
        parameters: fields
            .object("parameters")
            .map(|schema| Value::Object(schema.rest())),
        strict: fields.bool("strict"),
        ..ToolSpec::default()
    };
    tool.ext.extend(OWN, fields.rest());
    tool
}

fn choice(value: &Value) -> Option<ToolChoice> {
    match value.as_str() {
        Some("auto") => Some(ToolChoice::Auto),
        Some("none") => Some(ToolChoice::None),
        Some("required") => Some(ToolChoice::Required),
        Some(_) => None,
        None => {
            let name = value.get("name")?.as_str()?;
            (*value == json!({"type": "function", "name": name}))
                .then(|| ToolChoice::Tool(String::from(name)))
        }
    }
}

fn reasoning(fields: &mut Fields, chat: &mut ChatRequest) {
    let Some(mut inner) = fields.object("reasoning") else {
        return;
    };
    let reasoning = ReasoningRequest {
        effort: inner.string("effort"),
        summary: inner.string("summary"),
        ..ReasoningRequest::default()
    };
    if reasoning == ReasoningRequest::default() {
        return fields.put_back("reasoning", Value::Object(inner.rest()));
    }
    chat.reasoning = Some(reasoning);
    fields.keep("reasoning", inner);
}

fn format(fields: &mut Fields, chat: &mut ChatRequest) {
    let Some(mut text) = fields.object("text") else {
        return;
    };
    let format = text.peek("format").and_then(|format| {
        let map = format.as_object()?;
        match map.get("type")?.as_str()? {
            "text" if map.len() == 1 => Some(ResponseFormat::Text),
            "json_object" if map.len() == 1 => Some(ResponseFormat::JsonObject),
            "json_schema" => {
                let mut inner = map.clone();
                inner.shift_remove("type");
                crate::openai_chat::schema_format(Value::Object(inner))
            }
            _ => None,
        }
    });
    if format.is_none() {
        return fields.put_back("text", Value::Object(text.rest()));
    }
    chat.response_format = format;
    text.take("format");
    fields.keep("text", text);
}
