//! Decodes a request. Ollama streams unless `stream` is false.

use ir::{ChatRequest, Error, Fields, Generation, ReasoningRequest, ResponseFormat, ToolSpec};
use serde_json::{Value, json};

use crate::call_id::CallIds;
use crate::constant_field;
use crate::ollama::{OWN, message_decode};

pub fn decode(body: Value) -> Result<ChatRequest, Error> {
    let mut fields = Fields::of(body).ok_or_else(|| Error::invalid_request("the body is not an object"))?;
    let messages = fields
        .array("messages")
        .ok_or_else(|| Error::invalid_request("`messages` is missing"))?;
    let mut chat = ChatRequest {
        model: fields.string("model"),
        ..ChatRequest::default()
    };
    let mut calls = CallIds::new(OWN);
    for message in messages {
        chat.messages.push(message_decode::decode(message, &mut calls)?);
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
        chat.generation = generation(&mut options, &mut chat.ext);
        fields.keep("options", options);
    }
    chat.generation.logprobs = fields.bool("logprobs");
    chat.generation.top_logprobs = fields.u64("top_logprobs");
    chat.generation.stream = fields.bool("stream");
    if chat.generation.stream.is_none() && fields.peek("stream").is_none() {
        constant_field::note_absent(OWN, &mut chat.ext, "", "stream");
        chat.generation.stream = Some(true);
    }
    format(&mut fields, &mut chat);
    think(&mut fields, &mut chat);
    chat.ext.extend(OWN, fields.rest());
    Ok(chat)
}

fn tool(value: Value) -> ToolSpec {
    let hosted = |value| ToolSpec::hosted(OWN, value);
    let known = value["type"] == "function" && value.pointer("/function/name").is_some_and(Value::is_string);
    let (true, Some(mut fields)) = (known, Fields::of(value.clone())) else {
        return hosted(value);
    };
    fields.take("type");
    let mut inner = fields.object("function").unwrap_or_default();
    let mut tool = ToolSpec {
        name: inner.string("name").unwrap_or_default(),
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

fn generation(options: &mut Fields, ext: &mut ir::Ext) -> Generation {
    let mut knobs = Generation {
        temperature: options.number("temperature"),
        top_p: options.number("top_p"),
        top_k: options.number("top_k"),
        max_tokens: options.u64("num_predict"),
        seed: options.number("seed"),
        presence_penalty: options.number("presence_penalty"),
        frequency_penalty: options.number("frequency_penalty"),
        ..Generation::default()
    };
    if let Some(stop) = options.string("stop") {
        ext.set(OWN, "$stop", "string");
        knobs.stop = vec![stop];
    } else if let Some(list) = options.strings("stop") {
        if list.is_empty() {
            options.put_back("stop", json!([]));
        }
        knobs.stop = list;
    }
    knobs
}

fn format(fields: &mut Fields, chat: &mut ChatRequest) {
    let format = match fields.peek("format") {
        Some(Value::String(word)) if word == "json" => ResponseFormat::JsonObject,
        Some(schema @ Value::Object(_)) => ResponseFormat::JsonSchema {
            name: None,
            description: None,
            schema: schema.clone().into(),
            strict: None,
        },
        _ => return,
    };
    fields.take("format");
    chat.response_format = Some(format);
}

fn think(fields: &mut Fields, chat: &mut ChatRequest) {
    let reasoning = match fields.peek("think") {
        Some(Value::Bool(enabled)) => ReasoningRequest {
            enabled: Some(*enabled),
            ..ReasoningRequest::default()
        },
        Some(Value::String(word)) if !word.is_empty() => {
            chat.ext.set(OWN, "$think", word.as_str());
            ReasoningRequest {
                effort: Some(word.clone()),
                ..ReasoningRequest::default()
            }
        }
        _ => return,
    };
    fields.take("think");
    chat.reasoning = Some(reasoning);
}
