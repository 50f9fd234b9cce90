//! A request, written. The knobs go into `options` under this dialect's names: under other names the
//! server would ignore them without a word.

use ir::{
    Action, ChatRequest, Error, Generation, Ledger, Map, ReasoningRequest, ResponseFormat, ToolChoice,
    ToolSpec,
};
use serde_json::{Number, Value, json};

use crate::extras;
use crate::ollama::OWN;
use crate::ollama::message_out::{Names, encode as encode_message};
use crate::turns::turns;

pub fn encode(chat: &ChatRequest, ledger: &mut Ledger) -> Result<Value, Error> {
    let mut map = Map::new();
    put(&mut map, "model", chat.model.clone());
    let turns = turns(&chat.messages);
    let calls = turns.iter().flat_map(ir::Message::tool_calls);
    let names: Names = calls.map(|call| (call.id.clone(), call.name.clone())).collect();
    let mut messages = Vec::new();
    for (at, message) in turns.iter().enumerate() {
        encode_message(
            message,
            &names,
            &format!("/payload/messages/{at}"),
            &mut messages,
            ledger,
        )?;
    }
    put(&mut map, "messages", Some(messages));
    if !chat.tools.is_empty() {
        let tools = chat.tools.iter().enumerate();
        let tools: Vec<Value> = tools
            .filter_map(|(at, tool)| encode_tool(tool, at, ledger))
            .collect();
        put(&mut map, "tools", Some(tools));
    }
    let mut options = Map::new();
    put_generation(&chat.generation, chat, &mut options, ledger);
    if !options.is_empty() {
        put(&mut map, "options", Some(options));
    }
    put_format(chat, &mut map, ledger);
    put_reasoning(chat.reasoning.as_ref(), &mut map, ledger);
    let said = [
        (
            "tool_choice",
            chat.tool_choice
                .as_ref()
                .is_some_and(|choice| *choice != ToolChoice::Auto),
        ),
        ("parallel_tool_calls", chat.parallel_tool_calls == Some(false)),
        ("user", chat.user.is_some()),
        (
            "metadata",
            chat.metadata
                .as_ref()
                .is_some_and(|metadata| !metadata.is_empty()),
        ),
        ("modalities", chat.modalities.iter().any(|word| word != "text")),
    ];
    for (key, _) in said.iter().filter(|(_, there)| *there) {
        ledger.dropped(format!("/payload/{key}"), format!("{OWN} has no word for it"));
    }
    extras::book(chat, OWN, ledger);
    chat.ext.restore(OWN, &mut map);
    ledger.foreign("/payload", &chat.ext, OWN);
    // The server streams unless told not to.
    if !map.contains_key("stream") && chat.ext.note(OWN, "$stream").is_none() {
        put(&mut map, "stream", Some(chat.streams()));
    }
    Ok(Value::Object(map))
}

fn put(map: &mut Map, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        map.insert(String::from(key), value.into());
    }
}

fn encode_tool(tool: &ToolSpec, at: usize, ledger: &mut Ledger) -> Option<Value> {
    let pointer = format!("/payload/tools/{at}");
    if let Some(hosted) = &tool.hosted {
        if hosted.dialect == OWN.as_str() {
            return Some(hosted.raw.clone());
        }
        ledger.dropped(pointer, format!("a tool that {} itself runs", hosted.dialect));
        return None;
    }
    let mut function = Map::new();
    put(&mut function, "name", Some(tool.name.clone()));
    put(&mut function, "description", tool.description.clone());
    put(&mut function, "parameters", tool.parameters.clone());
    for (key, there) in [
        ("strict", tool.strict == Some(true)),
        ("cache", tool.cache.is_some()),
    ] {
        if there {
            ledger.dropped(format!("{pointer}/{key}"), format!("{OWN} has no word for it"));
        }
    }
    let mut map = Map::new();
    put(&mut map, "type", Some("function"));
    put(&mut map, "function", Some(function));
    tool.ext.restore(OWN, &mut map);
    ledger.foreign(&pointer, &tool.ext, OWN);
    Some(Value::Object(map))
}

fn put_generation(knobs: &Generation, chat: &ChatRequest, options: &mut Map, ledger: &mut Ledger) {
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
        stream: _,
        rest: _,
    } = knobs;
    let number = |value: &Option<Number>| value.clone().map(Value::Number);
    put(options, "temperature", number(temperature));
    put(options, "top_p", number(top_p));
    put(options, "top_k", number(top_k));
    put(options, "num_predict", *max_tokens);
    match stop.as_slice() {
        [] => {}
        [one] if chat.ext.note(OWN, "$stop").is_some() => put(options, "stop", Some(one.clone())),
        list => put(options, "stop", Some(json!(list))),
    }
    put(options, "seed", number(seed));
    put(options, "presence_penalty", number(presence_penalty));
    put(options, "frequency_penalty", number(frequency_penalty));
    let lost = [
        ("n", n.is_some_and(|n| n != 1)),
        ("logprobs", *logprobs == Some(true)),
        ("top_logprobs", top_logprobs.is_some()),
    ];
    for (key, _) in lost.iter().filter(|(_, there)| *there) {
        ledger.dropped(
            format!("/payload/generation/{key}"),
            format!("{OWN} has no word for it"),
        );
    }
}

fn put_format(chat: &ChatRequest, map: &mut Map, ledger: &mut Ledger) {
    match &chat.response_format {
        Some(ResponseFormat::JsonObject) => put(map, "format", Some("json")),
        Some(ResponseFormat::JsonSchema {
            name,
            description,
            schema,
            strict: _,
        }) => {
            put(map, "format", Some(schema.clone()));
            if name.is_some() {
                ledger.note(
                    "/payload/response_format/name",
                    Action::Merged,
                    "a schema needs no name here",
                );
            }
            if description.is_some() {
                ledger.dropped(
                    "/payload/response_format/description",
                    format!("{OWN} has no word for it"),
                );
            }
        }
        Some(ResponseFormat::Text) | None => {}
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
    match (effort, enabled) {
        (Some(effort), _) => put(map, "think", Some(effort.clone())),
        (None, Some(enabled)) => put(map, "think", Some(*enabled)),
        (None, None) => {}
    }
    for (key, there) in [
        ("budget_tokens", budget_tokens.is_some()),
        ("summary", summary.is_some()),
    ] {
        if there {
            ledger.dropped(
                format!("/payload/reasoning/{key}"),
                format!("{OWN} has no word for it"),
            );
        }
    }
}
