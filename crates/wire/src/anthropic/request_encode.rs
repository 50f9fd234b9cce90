//! Encodes a request. All system messages are merged into one prompt; tool results are user messages.

use ir::{
    Action, ChatRequest, Error, Generation, Ledger, Map, Message, ReasoningRequest, ResponseFormat, Role,
    ToolChoice, ToolSpec,
};
use serde_json::{Number, Value, json};

use crate::anthropic::OWN;
use crate::anthropic::block_encode::{Purpose, encode as encode_block};
use crate::losses::{record_losses, record_message_losses};
use crate::openai_chat::cache_control;
use crate::optional_field::put;
use crate::tool_result_name;
use crate::turns::turns;
use crate::{constant_field, unknown_fields};

/// The dialect requires a limit. With this one most responses end by themselves.
const MAX_TOKENS: u64 = 4096;

pub fn encode(chat: &ChatRequest, ledger: &mut Ledger) -> Result<Value, Error> {
    let mut map = Map::new();
    put(&mut map, "model", chat.model.clone());
    let turns = turns(&chat.messages);
    put_system(chat, &turns, &mut map, ledger)?;
    put(
        &mut map,
        "messages",
        Some(Value::Array(messages(&turns, ledger)?)),
    );
    tool_result_name::book(&turns, OWN, ledger);
    if !chat.tools.is_empty() {
        let tools = chat.tools.iter().enumerate();
        let tools: Vec<Value> = tools
            .filter_map(|(at, tool)| encode_tool(tool, at, ledger))
            .collect();
        put(&mut map, "tools", Some(tools));
    }
    put_choice(chat, &mut map);
    put_generation(&chat.generation, chat, &mut map, ledger);
    put_output(chat, &mut map, ledger);
    if let Some(user) = &chat.user {
        put(&mut map, "metadata", Some(json!({"user_id": user})));
    }
    for key in chat.metadata.iter().flat_map(|metadata| metadata.keys()) {
        ledger.dropped(
            format!("/payload/metadata/{key}"),
            format!("not supported by {OWN}"),
        );
    }
    if chat.modalities.iter().any(|word| word != "text") {
        ledger.dropped("/payload/modalities", format!("{OWN} supports only text output"));
    }
    unknown_fields::book(chat, OWN, ledger);
    chat.ext.restore(OWN, &mut map);
    ledger.foreign("/payload", &chat.ext, OWN);
    if !map.contains_key("max_tokens") && !constant_field::is_absent(OWN, &chat.ext, "", "max_tokens") {
        put(&mut map, "max_tokens", Some(MAX_TOKENS));
        let pointer = "/payload/generation/max_tokens";
        ledger.changed(
            pointer,
            Action::Added,
            Value::Null,
            MAX_TOKENS,
            format!("{OWN} requires a limit"),
        );
    }
    Ok(Value::Object(map))
}

fn is_system(message: &Message) -> bool {
    matches!(message.role, Role::System | Role::Developer)
}

fn put_system(
    chat: &ChatRequest,
    turns: &[Message],
    map: &mut Map,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    let leading = turns.iter().take_while(|message| is_system(message)).count();
    let mut blocks = Vec::new();
    for (at, message) in turns.iter().enumerate().filter(|(_, message)| is_system(message)) {
        let pointer = format!("/payload/messages/{at}");
        if at >= leading || leading > 1 {
            ledger.note(&pointer, Action::Merged, format!("{OWN} has one system prompt"));
        }
        record_message_losses(OWN, &pointer, message, ledger);
        for (index, part) in message.parts.iter().enumerate() {
            let pointer = format!("{pointer}/content_parts/{index}");
            blocks.extend(encode_block(part, Purpose::Replay, &pointer, ledger)?);
        }
        ledger.foreign(&pointer, &message.ext, OWN);
    }
    let as_blocks = chat.ext.note(OWN, "$system") == Some("blocks");
    match blocks.as_slice() {
        [] => {}
        [only]
            if !as_blocks && only.as_object().is_some_and(|map| map.len() == 2) && only["type"] == "text" =>
        {
            put(map, "system", Some(only["text"].clone()));
        }
        _ => put(map, "system", Some(blocks)),
    }
    Ok(())
}

fn messages(turns: &[Message], ledger: &mut Ledger) -> Result<Vec<Value>, Error> {
    let mut out: Vec<Value> = Vec::new();
    let mut after_tool = false;
    for (at, message) in turns
        .iter()
        .enumerate()
        .filter(|(_, message)| !is_system(message))
    {
        let pointer = format!("/payload/messages/{at}");
        let mut blocks = Vec::new();
        for (index, part) in message.parts.iter().enumerate() {
            let pointer = format!("{pointer}/content_parts/{index}");
            blocks.extend(encode_block(part, Purpose::Replay, &pointer, ledger)?);
        }
        record_message_losses(OWN, &pointer, message, ledger);
        ledger.foreign(&pointer, &message.ext, OWN);
        // All results of one turn are in one message.
        if message.role == Role::Tool
            && after_tool
            && let Some(list) = out.last_mut().and_then(|last| last["content"].as_array_mut())
        {
            list.append(&mut blocks);
            continue;
        }
        after_tool = message.role == Role::Tool;
        let role = if message.role == Role::Assistant {
            "assistant"
        } else {
            "user"
        };
        let plain = message
            .plain_text()
            .filter(|_| message.ext.note(OWN, "$content").is_none());
        let content = plain.map_or_else(|| Value::Array(blocks), Value::from);
        let mut map = Map::new();
        put(&mut map, "role", Some(role));
        put(&mut map, "content", Some(content));
        message.ext.restore(OWN, &mut map);
        out.push(Value::Object(map));
    }
    Ok(out)
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
    let mut map = Map::new();
    put(&mut map, "type", tool.ext.note(OWN, "$type"));
    put(&mut map, "name", Some(tool.name.clone()));
    put(&mut map, "description", tool.description.clone());
    let schema = tool
        .parameters
        .clone()
        .unwrap_or_else(|| json!({"type": "object"}));
    put(&mut map, "input_schema", Some(schema));
    put(&mut map, "strict", tool.strict);
    put(&mut map, "cache_control", tool.cache.as_ref().map(cache_control));
    tool.ext.restore(OWN, &mut map);
    ledger.foreign(&pointer, &tool.ext, OWN);
    Some(Value::Object(map))
}

fn put_choice(chat: &ChatRequest, map: &mut Map) {
    let choice = match &chat.tool_choice {
        Some(ToolChoice::Auto) => Some(json!({"type": "auto"})),
        Some(ToolChoice::None) => Some(json!({"type": "none"})),
        Some(ToolChoice::Required) => Some(json!({"type": "any"})),
        Some(ToolChoice::Tool(name)) => Some(json!({"type": "tool", "name": name})),
        None if chat.parallel_tool_calls == Some(false) => Some(json!({"type": "auto"})),
        None => None,
    };
    if let Some(mut choice) = choice {
        if let (Some(parallel), Some(inner)) = (chat.parallel_tool_calls, choice.as_object_mut()) {
            inner.insert(String::from("disable_parallel_tool_use"), json!(!parallel));
        }
        put(map, "tool_choice", Some(choice));
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
    let number = |value: &Option<Number>| value.clone().map(Value::Number);
    put(map, "max_tokens", *max_tokens);
    let hot = temperature
        .as_ref()
        .and_then(Number::as_f64)
        .is_some_and(|degree| degree > 1.0);
    if hot && chat.ext.value(OWN, "$temperature").is_none() {
        put(map, "temperature", Some(1));
        let pointer = "/payload/generation/temperature";
        ledger.changed(
            pointer,
            Action::Clamped,
            json!(temperature),
            1,
            format!("{OWN} allows 0 to 1"),
        );
    } else {
        put(map, "temperature", number(temperature));
    }
    put(map, "top_p", number(top_p));
    put(map, "top_k", number(top_k));
    if !stop.is_empty() {
        put(map, "stop_sequences", Some(json!(stop)));
    }
    put(map, "stream", *stream);
    let lost = [
        ("seed", seed.is_some()),
        ("presence_penalty", presence_penalty.is_some()),
        ("frequency_penalty", frequency_penalty.is_some()),
        ("n", n.is_some_and(|n| n != 1)),
        ("logprobs", *logprobs == Some(true)),
        ("top_logprobs", top_logprobs.is_some()),
    ];
    record_losses(OWN, "/payload/generation", &lost, ledger);
}

fn put_output(chat: &ChatRequest, map: &mut Map, ledger: &mut Ledger) {
    let mut config = Map::new();
    match &chat.response_format {
        Some(ResponseFormat::JsonSchema {
            name,
            description,
            schema,
            strict: _,
        }) => {
            let format = json!({"type": "json_schema", "schema": schema});
            match chat.ext.note(OWN, "$format") {
                Some(key) => put(map, key, Some(format)),
                None => put(&mut config, "format", Some(format)),
            }
            if name.is_some() {
                let pointer = "/payload/response_format/name";
                ledger.note(pointer, Action::Merged, "a schema has no name in this dialect");
            }
            if description.is_some() {
                ledger.dropped(
                    "/payload/response_format/description",
                    format!("not supported by {OWN}"),
                );
            }
        }
        Some(ResponseFormat::JsonObject) => {
            ledger.dropped(
                "/payload/response_format",
                format!("{OWN} requires a schema for JSON output"),
            );
        }
        Some(ResponseFormat::Text) | None => {}
    }
    if let Some(reasoning) = &chat.reasoning {
        put_reasoning(reasoning, map, &mut config, ledger);
    }
    if !config.is_empty() {
        put(map, "output_config", Some(config));
    }
}

fn put_reasoning(reasoning: &ReasoningRequest, map: &mut Map, config: &mut Map, ledger: &mut Ledger) {
    let ReasoningRequest {
        enabled,
        effort,
        budget_tokens,
        summary,
    } = reasoning;
    match (enabled, budget_tokens) {
        (Some(false), _) => put(map, "thinking", Some(json!({"type": "disabled"}))),
        (_, Some(budget)) => put(
            map,
            "thinking",
            Some(json!({"type": "enabled", "budget_tokens": budget})),
        ),
        (Some(true), None) => put(map, "thinking", Some(json!({"type": "adaptive"}))),
        (None, None) => {}
    }
    match effort.as_deref() {
        Some("none") => put(map, "thinking", Some(json!({"type": "disabled"}))),
        Some("minimal") => {
            put(config, "effort", Some("low"));
            let pointer = "/payload/reasoning/effort";
            ledger.changed(
                pointer,
                Action::Replaced,
                "minimal",
                "low",
                format!("{OWN} has no lower effort"),
            );
        }
        word => put(config, "effort", word),
    }
    if summary.is_some() {
        ledger.dropped("/payload/reasoning/summary", format!("not supported by {OWN}"));
    }
}
