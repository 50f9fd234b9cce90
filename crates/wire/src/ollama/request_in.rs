//! A request, read.

use ir::{ChatRequest, Error, Fields, Generation, ReasoningRequest, ResponseFormat, ToolSpec};
use serde_json::{Value, json};

use crate::ollama::OWN;
use crate::ollama::message_in::{self, Calls};

pub fn decode(body: Value) -> Result<ChatRequest, Error> {
    let mut fields = Fields::of(body).ok_or_else(|| Error::invalid_request("the body is not an object"))?;
    let messages = fields
        .array("messages")
        .ok_or_else(|| Error::invalid_request("`messages` is missing"))?;
    let mut chat = ChatRequest {
        model: fields.string("model"),
        ..ChatRequest::default()
    };
    let mut calls = Calls::default();
    for value in messages {
        chat.messages.push(message_in::decode(value, &mut calls)?);
    }
    match fields.array("tools") {
        Some(list) if list.is_empty() => fields.put_back("tools", Value::Array(list)),
        Some(list) => chat.tools = list.into_iter().map(tool).collect(),
        None => {}
    }
    if let Some(mut options) = fields.object("options") {
        if options.is_empty() {
            fields.put_back("options", json!({}));
        }
        generation(&mut options, &mut chat);
        fields.keep("options", options);
    }
    chat.generation.stream = fields.bool("stream");
    // This dialect streams unless told not to.
    if chat.generation.stream.is_none() && fields.peek("stream").is_none() {
        chat.generation.stream = Some(true);
        chat.ext.set(OWN, "$stream", "absent");
    }
    match fields.take("format") {
        Some(Value::String(word)) if word == "json" => {
            chat.response_format = Some(ResponseFormat::JsonObject);
        }
        Some(Value::Object(schema)) => {
            let schema = Value::Object(schema);
            let format = ResponseFormat::JsonSchema {
                name: None,
                description: None,
                schema,
                strict: None,
            };
            chat.response_format = Some(format);
        }
        Some(other) => fields.put_back("format", other),
        None => {}
    }
    match fields.take("think") {
        Some(Value::Bool(enabled)) => {
            chat.reasoning = Some(ReasoningRequest {
                enabled: Some(enabled),
                ..ReasoningRequest::default()
            });
        }
        Some(Value::String(effort)) => {
            chat.reasoning = Some(ReasoningRequest {
                effort: Some(effort),
                ..ReasoningRequest::default()
            });
        }
        Some(other) => fields.put_back("think", other),
        None => {}
    }
    chat.ext.extend(OWN, fields.rest());
    Ok(chat)
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
        ..ToolSpec::default()
    };
    fields.keep("function", inner);
    tool.ext.extend(OWN, fields.rest());
    tool
}

fn generation(options: &mut Fields, chat: &mut ChatRequest) {
    chat.generation = Generation {
        temperature: options.number("temperature"),
        top_p: options.number("top_p"),
        top_k: options.number("top_k"),
        max_tokens: options.u64("num_predict"),
        seed: options.number("seed"),
        presence_penalty: options.number("presence_penalty"),
        frequency_penalty: options.number("frequency_penalty"),
        ..Generation::default()
    };
    match options.strings("stop") {
        Some(list) if list.is_empty() => options.put_back("stop", json!([])),
        Some(list) => chat.generation.stop = list,
        None => {
            if let Some(stop) = options.string("stop") {
                chat.generation.stop = vec![stop];
                chat.ext.set(OWN, "$stop", "string");
            }
        }
    }
}
