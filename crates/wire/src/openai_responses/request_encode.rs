//! Encodes a request.

use ir::{
    ChatRequest, Error, Generation, Ledger, Map, Message, ReasoningRequest, ResponseFormat, Role, ToolChoice,
    ToolSpec,
};
use serde_json::{Number, Value, json};

use crate::losses::{record_losses, record_message_losses};
use crate::openai_responses::OWN;
use crate::openai_responses::item_encode::{EncodedPart, Purpose, encode as encode_part, put_bookkeeping};
use crate::optional_field::put;
use crate::tool_result_name;
use crate::turns::{ITEM, is_item};
use crate::unknown_fields;

pub fn encode(chat: &ChatRequest, ledger: &mut Ledger) -> Result<Value, Error> {
    let mut map = Map::new();
    put(&mut map, "model", chat.model.clone());
    let mut rest = chat.messages.as_slice();
    if let [first, others @ ..] = rest
        && first.role == Role::System
        && !is_item(first)
        && first.ext.is_empty()
        && let Some(text) = first.plain_text()
    {
        put(&mut map, "instructions", Some(text));
        rest = others;
    }
    let skipped = chat.messages.len() - rest.len();
    put(&mut map, "input", Some(input(chat, rest, skipped, ledger)?));
    tool_result_name::book(&chat.messages, OWN, ledger);
    if !chat.tools.is_empty() {
        let tools = chat.tools.iter().enumerate();
        let tools: Vec<Value> = tools
            .filter_map(|(at, tool)| encode_tool(tool, at, ledger))
            .collect();
        put(&mut map, "tools", Some(tools));
    }
    put(
        &mut map,
        "tool_choice",
        chat.tool_choice.as_ref().map(encode_choice),
    );
    put(&mut map, "parallel_tool_calls", chat.parallel_tool_calls);
    put_generation(&chat.generation, &mut map, ledger);
    put_reasoning(chat.reasoning.as_ref(), &mut map, ledger);
    put(&mut map, "text", chat.response_format.as_ref().map(encode_format));
    if chat.modalities.iter().any(|word| word != "text") {
        ledger.dropped("/payload/modalities", format!("{OWN} supports only text output"));
    }
    put(&mut map, "user", chat.user.clone());
    put(&mut map, "metadata", chat.metadata.clone());
    unknown_fields::book(chat, OWN, ledger);
    chat.ext.restore(OWN, &mut map);
    ledger.foreign("/payload", &chat.ext, OWN);
    Ok(Value::Object(map))
}

fn input(
    chat: &ChatRequest,
    messages: &[Message],
    skipped: usize,
    ledger: &mut Ledger,
) -> Result<Value, Error> {
    if chat.ext.note(OWN, "$input") == Some("string")
        && let [only] = messages
        && let Some(text) = only.plain_text()
    {
        return Ok(json!(text));
    }
    let mut items = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        encode_message(
            message,
            &format!("/payload/messages/{}", at + skipped),
            &mut items,
            ledger,
        )?;
    }
    Ok(Value::Array(items))
}

/// The parts of a message as items: adjacent content parts form one message, the others are separate items.
fn encode_message(
    message: &Message,
    pointer: &str,
    items: &mut Vec<Value>,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    let note = message.ext.note(OWN, ITEM);
    let mut content: Vec<Value> = Vec::new();
    for (at, part) in message.parts.iter().enumerate() {
        let pointer = format!("{pointer}/content_parts/{at}");
        match encode_part(part, message.role, Purpose::Replay, &pointer, ledger)? {
            EncodedPart::Content(value) => content.push(value),
            EncodedPart::Nothing => {}
            EncodedPart::Item(value) => {
                if !content.is_empty() {
                    let before = std::mem::take(&mut content);
                    items.push(message_item(message, Value::Array(before)));
                }
                items.push(value);
            }
        }
    }
    let kept = note.is_some_and(|note| note != "item") && message.parts.is_empty();
    if !content.is_empty() || kept {
        let plain = message
            .plain_text()
            .filter(|_| message.ext.note(OWN, "$content").is_none());
        items.push(message_item(
            message,
            plain.map_or_else(|| Value::Array(content), Value::from),
        ));
    }
    record_message_losses(OWN, pointer, message, ledger);
    ledger.foreign(pointer, &message.ext, OWN);
    Ok(())
}

fn message_item(message: &Message, content: Value) -> Value {
    let role = match message.role {
        Role::System => "system",
        Role::Developer => "developer",
        Role::User | Role::Tool => "user",
        Role::Assistant => "assistant",
    };
    let mut map = Map::new();
    if message.ext.note(OWN, ITEM) != Some("untyped") {
        put(&mut map, "type", Some("message"));
    }
    put(&mut map, "role", Some(role));
    put(&mut map, "content", Some(content));
    put_bookkeeping(&message.ext, &mut map);
    message.ext.restore(OWN, &mut map);
    Value::Object(map)
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
    put(&mut map, "type", Some("function"));
    put(&mut map, "name", Some(tool.name.clone()));
    put(&mut map, "description", tool.description.clone());
    put(&mut map, "parameters", tool.parameters.clone());
    put(&mut map, "strict", tool.strict);
    if tool.cache.is_some() {
        ledger.dropped(format!("{pointer}/cache"), format!("{OWN} caches automatically"));
    }
    tool.ext.restore(OWN, &mut map);
    ledger.foreign(&pointer, &tool.ext, OWN);
    Some(Value::Object(map))
}

fn encode_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Tool(name) => json!({"type": "function", "name": name}),
    }
}

fn put_generation(knobs: &Generation, map: &mut Map, ledger: &mut Ledger) {
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
    put(map, "temperature", number(temperature));
    put(map, "top_p", number(top_p));
    put(map, "max_output_tokens", *max_tokens);
    put(map, "top_logprobs", *top_logprobs);
    put(map, "stream", *stream);
    let lost = [
        ("top_k", top_k.is_some()),
        ("stop", !stop.is_empty()),
        ("seed", seed.is_some()),
        ("presence_penalty", presence_penalty.is_some()),
        ("frequency_penalty", frequency_penalty.is_some()),
        ("n", n.is_some_and(|n| n != 1)),
        ("logprobs", *logprobs == Some(true)),
    ];
    record_losses(OWN, "/payload/generation", &lost, ledger);
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
    let mut inner = Map::new();
    put(&mut inner, "effort", effort.clone());
    put(&mut inner, "summary", summary.clone());
    if !inner.is_empty() {
        put(map, "reasoning", Some(inner));
    }
    let lost = [
        ("enabled", enabled.is_some() && effort.is_none()),
        ("budget_tokens", budget_tokens.is_some()),
    ];
    record_losses(OWN, "/payload/reasoning", &lost, ledger);
}

fn encode_format(format: &ResponseFormat) -> Value {
    match format {
        ResponseFormat::Text => json!({"format": {"type": "text"}}),
        ResponseFormat::JsonObject => json!({"format": {"type": "json_object"}}),
        ResponseFormat::JsonSchema {
            name,
            description,
            schema,
            strict,
        } => {
            let mut inner = Map::new();
            put(&mut inner, "type", Some("json_schema"));
            put(
                &mut inner,
                "name",
                Some(name.clone().unwrap_or_else(|| String::from("response"))),
            );
            put(&mut inner, "description", description.clone());
            put(&mut inner, "schema", Some(Value::clone(schema)));
            put(&mut inner, "strict", *strict);
            json!({"format": inner})
        }
    }
}
