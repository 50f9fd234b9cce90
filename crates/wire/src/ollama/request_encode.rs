//! Encodes a request. Generation parameters are written to `options` with Ollama's names: it silently ignores
//! unknown names, so all others are recorded as losses.

use ir::{Action, ChatRequest, Error, Generation, Ledger, Map, ReasoningRequest, ResponseFormat, ToolSpec};
use serde_json::{Number, Value, json};

use crate::losses::record_losses;
use crate::ollama::OWN;
use crate::ollama::message_encode::{self, Names};
use crate::optional_field::put;
use crate::turns::turns;
use crate::{constant_field, unknown_fields};

pub fn encode(chat: &ChatRequest, ledger: &mut Ledger) -> Result<Value, Error> {
    let mut map = Map::new();
    put(&mut map, "model", chat.model.clone());
    let mut names = Names::new();
    let mut messages = Vec::with_capacity(chat.messages.len());
    for (at, message) in turns(&chat.messages).iter().enumerate() {
        names.extend(
            message
                .tool_calls()
                .map(|call| (call.id.clone(), call.name.clone())),
        );
        let pointer = format!("/payload/messages/{at}");
        message_encode::encode(message, &names, &pointer, &mut messages, ledger)?;
    }
    put(&mut map, "messages", Some(messages));
    if !chat.tools.is_empty() {
        let tools = chat.tools.iter().enumerate();
        let tools: Vec<Value> = tools
            .filter_map(|(at, tool)| encode_tool(tool, at, ledger))
            .collect();
        put(&mut map, "tools", Some(tools));
    }
    put_generation(&chat.generation, chat, &mut map, ledger);
    put_format(chat.response_format.as_ref(), &mut map, ledger);
    put_think(chat, &mut map, ledger);
    book(chat, ledger);
    unknown_fields::book(chat, OWN, ledger);
    chat.ext.restore(OWN, &mut map);
    ledger.foreign("/payload", &chat.ext, OWN);
    // An absent flag means a stream in this dialect, and a unary response in all others.
    constant_field::put(&mut map, OWN, &chat.ext, "", "stream", false);
    Ok(Value::Object(map))
}

/// Records the request fields that this dialect does not support.
fn book(chat: &ChatRequest, ledger: &mut Ledger) {
    let choice = chat.tool_choice.as_ref();
    let lost = [
        (
            "tool_choice",
            choice.is_some_and(|choice| *choice != ir::ToolChoice::Auto),
        ),
        ("parallel_tool_calls", chat.parallel_tool_calls == Some(false)),
        ("modalities", chat.modalities.iter().any(|word| word != "text")),
        ("user", chat.user.is_some()),
        (
            "metadata",
            chat.metadata
                .as_ref()
                .is_some_and(|metadata| !metadata.is_empty()),
        ),
    ];
    record_losses(OWN, "/payload", &lost, ledger);
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
    let mut map = Map::new();
    put(&mut map, "type", Some("function"));
    put(&mut map, "function", Some(function));
    let lost = [
        ("strict", tool.strict == Some(true)),
        ("cache", tool.cache.is_some()),
    ];
    record_losses(OWN, &pointer, &lost, ledger);
    tool.ext.restore(OWN, &mut map);
    ledger.foreign(&pointer, &tool.ext, OWN);
    Some(Value::Object(map))
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
    let mut options = Map::new();
    put(&mut options, "temperature", number(temperature));
    put(&mut options, "top_p", number(top_p));
    put(&mut options, "top_k", number(top_k));
    put(&mut options, "num_predict", *max_tokens);
    put(&mut options, "seed", number(seed));
    put(&mut options, "presence_penalty", number(presence_penalty));
    put(&mut options, "frequency_penalty", number(frequency_penalty));
    match stop.as_slice() {
        [] => {}
        [one] if chat.ext.note(OWN, "$stop").is_some() => put(&mut options, "stop", Some(one.clone())),
        list => put(&mut options, "stop", Some(json!(list))),
    }
    if !options.is_empty() {
        put(map, "options", Some(options));
    }
    put(map, "logprobs", *logprobs);
    put(map, "top_logprobs", *top_logprobs);
    if *stream != Some(true) || !constant_field::is_absent(OWN, &chat.ext, "", "stream") {
        put(map, "stream", *stream);
    }
    if n.is_some_and(|n| n != 1) {
        ledger.dropped("/payload/generation/n", format!("{OWN} returns one choice"));
    }
}

fn put_format(format: Option<&ResponseFormat>, map: &mut Map, ledger: &mut Ledger) {
    match format {
        Some(ResponseFormat::JsonObject) => put(map, "format", Some("json")),
        Some(ResponseFormat::JsonSchema {
            name,
            description,
            schema,
            strict: _,
        }) => {
            put(map, "format", Some(Value::clone(schema)));
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
        Some(ResponseFormat::Text) | None => {}
    }
}

/// Thinking is on, off, or one of three levels.
fn put_think(chat: &ChatRequest, map: &mut Map, ledger: &mut Ledger) {
    let Some(ReasoningRequest {
        enabled,
        effort,
        budget_tokens,
        summary,
    }) = &chat.reasoning
    else {
        return;
    };
    let pointer = "/payload/reasoning/effort";
    let own = chat.ext.note(OWN, "$think");
    let think = match (enabled, effort.as_deref()) {
        (Some(false), None) | (_, Some("none")) => Some(json!(false)),
        (Some(false), Some(_)) => {
            ledger.dropped(pointer, "thinking is off");
            Some(json!(false))
        }
        (_, Some(word)) if own == Some(word) || ["low", "medium", "high"].contains(&word) => {
            Some(json!(word))
        }
        (_, Some(word)) => {
            let nearest = if word == "minimal" { "low" } else { "high" };
            let reason = format!("{OWN} supports only low, medium and high");
            ledger.changed(pointer, Action::Replaced, word, nearest, reason);
            Some(json!(nearest))
        }
        (Some(true), None) => Some(json!(true)),
        (None, None) => budget_tokens.map(|budget| json!(budget > 0)),
    };
    put(map, "think", think);
    let lost = [
        ("budget_tokens", budget_tokens.is_some()),
        ("summary", summary.is_some()),
    ];
    record_losses(OWN, "/payload/reasoning", &lost, ledger);
}
