//! Decodes a request. The system prompt becomes the first message.

use ir::{
    ChatRequest, Content, Error, Fields, Generation, Message, Part, ReasoningRequest, ResponseFormat, Role,
    ToolChoice, ToolSpec,
};
use serde_json::{Value, json};

use crate::anthropic::{OWN, block_decode};
use crate::constant_field;
use crate::openai_chat::cache_hint;

pub fn decode(body: Value) -> Result<ChatRequest, Error> {
    let mut fields = Fields::of(body).ok_or_else(|| Error::invalid_request("the body is not an object"))?;
    let messages = fields
        .array("messages")
        .ok_or_else(|| Error::invalid_request("`messages` is missing"))?;
    let mut chat = ChatRequest {
        model: fields.string("model"),
        ..ChatRequest::default()
    };
    system(&mut fields, &mut chat);
    for value in messages {
        chat.messages.push(message(value)?);
    }
    match fields.array("tools") {
        Some(list) if list.is_empty() => fields.put_back("tools", Value::Array(list)),
        Some(list) => chat.tools = list.into_iter().map(tool).collect(),
        None => {}
    }
    choice(&mut fields, &mut chat);
    chat.generation = generation(&mut fields, &mut chat.ext);
    thinking(&mut fields, &mut chat);
    output(&mut fields, &mut chat);
    if let Some(mut metadata) = fields.object("metadata") {
        chat.user = metadata.string("user_id");
        if chat.user.is_none() || !metadata.is_empty() {
            fields.put_back("metadata", Value::Object(metadata.rest()));
        }
    }
    chat.ext.extend(OWN, fields.rest());
    Ok(chat)
}

fn system(fields: &mut Fields, chat: &mut ChatRequest) {
    match fields.take("system") {
        Some(Value::String(text)) => chat.messages.push(Message::text(Role::System, text)),
        Some(Value::Array(list)) if !list.is_empty() => {
            chat.ext.set(OWN, "$system", "blocks");
            let parts = list.into_iter().map(block_decode::decode).collect();
            chat.messages.push(Message::new(Role::System, parts));
        }
        Some(other) => fields.put_back("system", other),
        None => {}
    }
}

fn message(value: Value) -> Result<Message, Error> {
    let mut fields =
        Fields::of(value).ok_or_else(|| Error::invalid_request("a message must be an object"))?;
    let role = match fields.string("role").as_deref() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        _ => {
            return Err(Error::invalid_request(
                "the role of a message must be `user` or `assistant`",
            ));
        }
    };
    let mut message = match fields.take("content") {
        Some(Value::String(text)) => Message::text(role, text),
        Some(Value::Array(list)) => {
            let parts: Vec<Part> = list.into_iter().map(block_decode::decode).collect();
            let mut message = Message::new(role, parts);
            if message.parts.is_empty() || message.plain_text().is_some() {
                message.ext.set(OWN, "$content", "blocks");
            }
            message
        }
        _ => {
            return Err(Error::invalid_request(
                "`content` must be a string or a list of blocks",
            ));
        }
    };
    if message.content == Content::Parts && message.plain_text().is_some() {
        message.content = Content::Parts;
    }
    message.ext.extend(OWN, fields.rest());
    Ok(message)
}

fn tool(value: Value) -> ToolSpec {
    let hosted = |value| ToolSpec::hosted(OWN, value);
    let Some(mut fields) = Fields::of(value.clone()) else {
        return hosted(value);
    };
    match fields.take("type") {
        None => {}
        Some(kind) if kind == "custom" => {}
        Some(_) => return hosted(value),
    }
    let (Some(name), Some(schema)) = (fields.string("name"), fields.object("input_schema")) else {
        return hosted(value);
    };
    let mut tool = ToolSpec {
        name,
        description: fields.string("description"),
        parameters: Some(Value::Object(schema.rest())),
        strict: fields.bool("strict"),
        ..ToolSpec::default()
    };
    if let Some(hint) = fields.peek("cache_control").and_then(cache_hint) {
        tool.cache = Some(hint);
        fields.take("cache_control");
    }
    tool.ext.extend(OWN, fields.rest());
    if value["type"] == "custom" {
        tool.ext.set(OWN, "$type", "custom");
    }
    tool
}

fn choice(fields: &mut Fields, chat: &mut ChatRequest) {
    let Some(map) = fields.peek("tool_choice").and_then(Value::as_object) else {
        return;
    };
    let known = map
        .keys()
        .all(|key| ["type", "name", "disable_parallel_tool_use"].contains(&key.as_str()));
    let name = map.get("name").and_then(Value::as_str);
    let choice = match (map.get("type").and_then(Value::as_str), name) {
        (Some("auto"), None) => ToolChoice::Auto,
        (Some("any"), None) => ToolChoice::Required,
        (Some("none"), None) => ToolChoice::None,
        (Some("tool"), Some(name)) => ToolChoice::Tool(String::from(name)),
        _ => return,
    };
    let alone = map.get("disable_parallel_tool_use");
    if !known
        || alone.is_some_and(|alone| !alone.is_boolean())
        || (map.contains_key("name") && name.is_none())
    {
        return;
    }
    chat.parallel_tool_calls = alone.and_then(Value::as_bool).map(|alone| !alone);
    chat.tool_choice = Some(choice);
    fields.take("tool_choice");
}

fn generation(fields: &mut Fields, ext: &mut ir::Ext) -> Generation {
    let mut knobs = Generation {
        temperature: fields.number("temperature"),
        top_p: fields.number("top_p"),
        top_k: fields.number("top_k"),
        max_tokens: fields.u64("max_tokens"),
        stream: fields.bool("stream"),
        ..Generation::default()
    };
    if knobs.max_tokens.is_none() {
        constant_field::note_absent(OWN, ext, "", "max_tokens");
    }
    if knobs
        .temperature
        .as_ref()
        .and_then(serde_json::Number::as_f64)
        .is_some_and(|degree| degree > 1.0)
    {
        ext.set(OWN, "$temperature", true);
    }
    if let Some(list) = fields.strings("stop_sequences") {
        if list.is_empty() {
            fields.put_back("stop_sequences", json!([]));
        }
        knobs.stop = list;
    }
    knobs
}

fn thinking(fields: &mut Fields, chat: &mut ChatRequest) {
    let Some(map) = fields.peek("thinking").and_then(Value::as_object) else {
        return;
    };
    let budget = map.get("budget_tokens").and_then(Value::as_u64);
    let mut reasoning = ReasoningRequest::default();
    match (map.get("type").and_then(Value::as_str), budget, map.len()) {
        (Some("enabled"), Some(budget), 2) => {
            reasoning.enabled = Some(true);
            reasoning.budget_tokens = Some(budget);
        }
        (Some("disabled"), None, 1) => reasoning.enabled = Some(false),
        (Some("adaptive"), None, 1) => reasoning.enabled = Some(true),
        _ => return,
    }
    chat.reasoning = Some(reasoning);
    fields.take("thinking");
}

/// `output_config` contains the response format and the effort; the format used to be a separate field.
fn output(fields: &mut Fields, chat: &mut ChatRequest) {
    let schema_of = |format: &Value| {
        let map = format.as_object()?;
        (map.len() == 2 && map.get("type")? == "json_schema").then(|| map.get("schema").cloned())?
    };
    let as_format = |schema: Value| ResponseFormat::JsonSchema {
        name: None,
        description: None,
        schema: schema.into(),
        strict: None,
    };
    if let Some(mut config) = fields.object("output_config") {
        let before = config.clone();
        if let Some(schema) = config.peek("format").and_then(schema_of) {
            chat.response_format = Some(as_format(schema));
            config.take("format");
        }
        if let Some(effort) = config.string("effort") {
            chat.reasoning.get_or_insert_default().effort = Some(effort);
        }
        if before.is_empty() {
            fields.put_back("output_config", json!({}));
        }
        fields.keep("output_config", config);
    }
    if chat.response_format.is_none()
        && let Some(schema) = fields.peek("output_format").and_then(schema_of)
    {
        chat.response_format = Some(as_format(schema));
        chat.ext.set(OWN, "$format", "output_format");
        fields.take("output_format");
    }
}
