//! Encodes a request.

use ir::{
    ChatRequest, Error, Generation, Ledger, Map, ReasoningRequest, ResponseFormat, ToolChoice, ToolSpec,
};
use serde_json::{Value, json};

use crate::losses::record_losses;
use crate::openai_chat::content::restore;
use crate::openai_chat::{OWN, message_encode};
use crate::optional_field::put;
use crate::tool_result_name;
use crate::turns::turns;

pub fn encode(chat: &ChatRequest, ledger: &mut Ledger) -> Result<Value, Error> {
    let mut map = Map::with_capacity(7);
    put(&mut map, "model", chat.model.clone());
    let mut messages = Vec::with_capacity(chat.messages.len());
    let turns = turns(&chat.messages);
    for (at, message) in turns.iter().enumerate() {
        message_encode::encode(message, &format!("/payload/messages/{at}"), &mut messages, ledger)?;
    }
    tool_result_name::book(&turns, OWN, ledger);
    map.insert(String::from("messages"), Value::Array(messages));
    if !chat.tools.is_empty() {
        let tools = chat.tools.iter().enumerate();
        let tools: Vec<Value> = tools
            .filter_map(|(at, tool)| encode_tool(tool, at, ledger))
            .collect();
        map.insert(String::from("tools"), Value::Array(tools));
    }
    put_generation(&chat.generation, chat, &mut map, ledger);
    put(
        &mut map,
        "tool_choice",
        chat.tool_choice.as_ref().map(encode_choice),
    );
    put(&mut map, "parallel_tool_calls", chat.parallel_tool_calls);
    put(
        &mut map,
        "response_format",
        chat.response_format.as_ref().map(encode_format),
    );
    put_reasoning(chat.reasoning.as_ref(), &mut map, ledger);
    if !chat.modalities.is_empty() {
        put(&mut map, "modalities", Some(json!(chat.modalities)));
    }
    put(&mut map, "user", chat.user.clone());
    put(&mut map, "metadata", chat.metadata.clone());
    crate::unknown_fields::book(chat, OWN, ledger);
    restore(&chat.ext, OWN, "/payload", &mut map, ledger);
    Ok(Value::Object(map))
}

/// Streams of this dialect contain usage only on request.
pub fn ask_for_usage(body: &mut Value) {
    if body["stream"] == true
        && let Some(map) = body.as_object_mut()
    {
        let options = map.entry("stream_options").or_insert_with(|| json!({}));
        if let Some(options) = options.as_object_mut() {
            options.entry("include_usage").or_insert(Value::Bool(true));
        }
    }
}

/// Requests continuation of the last message. Servers such as llama.cpp do so by default; others, such as
/// vLLM, require the flag.
/// <https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html>
pub fn continue_last_message(body: &mut Value) {
    let is_assistant = body["messages"]
        .as_array()
        .and_then(|messages| messages.last())
        .is_some_and(|last| last["role"] == "assistant" && last["content"].is_string());
    if let (true, Some(map)) = (is_assistant, body.as_object_mut()) {
        map.insert(String::from("continue_final_message"), Value::Bool(true));
        map.insert(String::from("add_generation_prompt"), Value::Bool(false));
    }
}

fn put_generation(knobs: &Generation, chat: &ChatRequest, map: &mut Map, ledger: &mut Ledger) {
    let Generation {
        temperature,
        top_p,
        top_k,
        max_tokens,
        stop,
        seed,
        presence_penalty,
        frequency_penalty,
        n,
        logprobs,
        top_logprobs,
        stream,
        rest: _,
    } = knobs;
    let number = |value: &Option<serde_json::Number>| value.clone().map(Value::Number);
    put(map, "temperature", number(temperature));
    put(map, "top_p", number(top_p));
    // The vendor rejects this parameter; it is sent only if the source was this dialect.
    if top_k.is_none() || chat.ext.value(OWN, "$top_k").is_some() {
        put(map, "top_k", number(top_k));
    } else {
        ledger.dropped("/payload/generation/top_k", format!("not supported by {OWN}"));
    }
    put(map, "seed", number(seed));
    put(map, "presence_penalty", number(presence_penalty));
    put(map, "frequency_penalty", number(frequency_penalty));
    put(map, "n", *n);
    put(map, "logprobs", *logprobs);
    put(map, "top_logprobs", *top_logprobs);
    put(map, "stream", *stream);
    let limit = chat
        .ext
        .note(OWN, "$max_tokens")
        .unwrap_or("max_completion_tokens");
    put(map, limit, *max_tokens);
    match stop.as_slice() {
        [] => {}
        [one] if chat.ext.note(OWN, "$stop").is_some() => put(map, "stop", Some(one.clone())),
        list => put(map, "stop", Some(json!(list))),
    }
}

fn put_reasoning(reasoning: Option<&ReasoningRequest>, map: &mut Map, ledger: &mut Ledger) {
    let Some(ReasoningRequest {
        enabled,
        effort,
        budget_tokens,
        summary,
    }) = reasoning
    else {
        return;
    };
    put(map, "reasoning_effort", effort.clone());
    let lost = [
        ("enabled", enabled.is_some() && effort.is_none()),
        ("budget_tokens", budget_tokens.is_some()),
        ("summary", summary.is_some()),
    ];
    record_losses(OWN, "/payload/reasoning", &lost, ledger);
}

fn encode_tool(tool: &ToolSpec, at: usize, ledger: &mut Ledger) -> Option<Value> {
    let pointer = format!("/payload/tools/{at}");
    if let Some(hosted) = &tool.hosted {
        if hosted.dialect == OWN.as_str() {
            return Some(hosted.raw.clone());
        }
        ledger.dropped(pointer, format!("a server-side tool of {}", hosted.dialect));
        return None;
    }
    let mut function = Map::new();
    put(&mut function, "name", Some(tool.name.clone()));
    put(&mut function, "description", tool.description.clone());
    put(&mut function, "parameters", tool.parameters.clone());
    put(&mut function, "strict", tool.strict);
    let mut map = Map::new();
    put(&mut map, "type", Some("function"));
    put(&mut map, "function", Some(function));
    if tool.cache.is_some() {
        ledger.dropped(format!("{pointer}/cache"), format!("{OWN} caches automatically"));
    }
    restore(&tool.ext, OWN, &pointer, &mut map, ledger);
    Some(Value::Object(map))
}

fn encode_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Tool(name) => json!({"type": "function", "function": {"name": name}}),
    }
}

fn encode_format(format: &ResponseFormat) -> Value {
    match format {
        ResponseFormat::Text => json!({"type": "text"}),
        ResponseFormat::JsonObject => json!({"type": "json_object"}),
        ResponseFormat::JsonSchema {
            name,
            description,
            schema,
            strict,
        } => {
            let mut inner = Map::with_capacity(3);
            // The name is mandatory in this dialect.
            put(
                &mut inner,
                "name",
                Some(name.clone().unwrap_or_else(|| String::from("response"))),
            );
            put(&mut inner, "description", description.clone());
            put(&mut inner, "schema", Some(Value::clone(schema)));
            put(&mut inner, "strict", *strict);
            let mut format = Map::with_capacity(2);
            put(&mut format, "type", Some("json_schema"));
            put(&mut format, "json_schema", Some(inner));
            Value::Object(format)
        }
    }
}
