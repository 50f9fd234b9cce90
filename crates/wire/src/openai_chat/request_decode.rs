//! Decodes a request.

use ir::{ChatRequest, Error, Fields, Generation, ReasoningRequest, ResponseFormat, ToolChoice, ToolSpec};
use serde_json::Value;

use crate::openai_chat::{OWN, message_decode};

pub fn decode(body: Value) -> Result<ChatRequest, Error> {
    let mut fields = Fields::of(body).ok_or_else(|| Error::invalid_request("the body is not an object"))?;
    let messages = fields
        .array("messages")
        .ok_or_else(|| Error::invalid_request("`messages` is missing"))?;
    let mut chat = ChatRequest {
        model: fields.string("model"),
        ..ChatRequest::default()
    };
    chat.messages = messages
        .into_iter()
        .map(message_decode::decode)
        .collect::<Result<_, _>>()?;
    tools(&mut fields, &mut chat);
    chat.generation = generation(&mut fields, &mut chat.ext);
    chat.response_format = response_format(&mut fields);
    if let Some(effort) = fields.string("reasoning_effort") {
        chat.reasoning = Some(ReasoningRequest {
            effort: Some(effort),
            ..ReasoningRequest::default()
        });
    }
    if let Some(words) = fields.strings("modalities") {
        if words.is_empty() {
            fields.put_back("modalities", Value::Array(Vec::new()));
        }
        chat.modalities = words;
    }
    chat.user = fields.string("user");
    chat.metadata = fields.object("metadata").map(Fields::rest);
    chat.ext.extend(OWN, fields.rest());
    Ok(chat)
}

fn tools(fields: &mut Fields, chat: &mut ChatRequest) {
    match fields.array("tools") {
        Some(list) if list.is_empty() => fields.put_back("tools", Value::Array(list)),
        Some(list) => chat.tools = list.into_iter().map(tool).collect(),
        None => {}
    }
    chat.parallel_tool_calls = fields.bool("parallel_tool_calls");
    chat.tool_choice = fields.peek("tool_choice").and_then(choice);
    if chat.tool_choice.is_some() {
        fields.take("tool_choice");
    }
}

fn tool(value: Value) -> ToolSpec {
    let hosted = |value| ToolSpec::hosted(OWN, value);
    let Some(mut fields) = Fields::of(value.clone()) else {
        return hosted(value);
    };
    if fields.string("type").as_deref() != Some("function") {
        return hosted(value);
    }
    let Some(mut inner) = fields.object("function") else {
        return hosted(value);
    };
    let Some(name) = inner.string("name") else {
        return hosted(value);
    };
    let mut tool = ToolSpec {
        name,
        description: inner.string("description"),
        parameters: inner
            .object("parameters")
            .map(|schema| Value::Object(schema.rest())),
        strict: inner.bool("strict"),
        ..ToolSpec::default()
    };
    fields.keep("function", inner);
    tool.ext.extend(OWN, fields.rest());
    tool
}

fn choice(value: &Value) -> Option<ToolChoice> {
    match value {
        Value::String(word) => match word.as_str() {
            "auto" => Some(ToolChoice::Auto),
            "none" => Some(ToolChoice::None),
            "required" => Some(ToolChoice::Required),
            _ => None,
        },
        value => {
            let name = value.pointer("/function/name")?.as_str()?;
            let exact = serde_json::json!({"type": "function", "function": {"name": name}});
            (*value == exact).then(|| ToolChoice::Tool(String::from(name)))
        }
    }
}

/// The generation parameters. Two names of the token limit and two forms of `stop` are distinguished by
/// notes.
fn generation(fields: &mut Fields, ext: &mut ir::Ext) -> Generation {
    let mut knobs = Generation {
        temperature: fields.number("temperature"),
        top_p: fields.number("top_p"),
        top_k: fields.number("top_k"),
        seed: fields.number("seed"),
        presence_penalty: fields.number("presence_penalty"),
        frequency_penalty: fields.number("frequency_penalty"),
        n: fields.u64("n"),
        logprobs: fields.bool("logprobs"),
        top_logprobs: fields.u64("top_logprobs"),
        stream: fields.bool("stream"),
        ..Generation::default()
    };
    if knobs.top_k.is_some() {
        ext.set(OWN, "$top_k", true);
    }
    knobs.max_tokens = fields.u64("max_completion_tokens");
    if knobs.max_tokens.is_none() {
        knobs.max_tokens = fields.u64("max_tokens");
        if knobs.max_tokens.is_some() {
            ext.set(OWN, "$max_tokens", "max_tokens");
        }
    }
    if let Some(stop) = fields.string("stop") {
        ext.set(OWN, "$stop", "string");
        knobs.stop = vec![stop];
    } else if let Some(list) = fields.strings("stop") {
        if list.is_empty() {
            fields.put_back("stop", Value::Array(Vec::new()));
        }
        knobs.stop = list;
    }
    knobs
}

fn response_format(fields: &mut Fields) -> Option<ResponseFormat> {
    let value = fields.peek("response_format")?;
    let map = value.as_object()?;
    let format = match map.get("type")?.as_str()? {
        "text" if map.len() == 1 => ResponseFormat::Text,
        "json_object" if map.len() == 1 => ResponseFormat::JsonObject,
        "json_schema" if map.len() == 2 => schema_format(map.get("json_schema")?.clone())?,
        _ => return None,
    };
    fields.take("response_format");
    Some(format)
}

/// `{"name", "description", "schema", "strict"}`, if it has no other fields.
pub(crate) fn schema_format(value: Value) -> Option<ResponseFormat> {
    let mut inner = Fields::of(value)?;
    let format = ResponseFormat::JsonSchema {
        // The name is mandatory; without one the object is unknown.
        name: Some(inner.string("name")?),
        description: inner.string("description"),
        schema: inner.take("schema")?.into(),
        strict: inner.bool("strict"),
    };
    inner.is_empty().then_some(format)
}
