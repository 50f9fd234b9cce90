//! A request, written. The model and the wish to stream stand in the address, not in the body.

use ir::{
    Action, ChatRequest, Error, Generation, Ledger, Map, Message, ReasoningRequest, ResponseFormat, Role,
    ToolChoice, ToolSpec,
};
use serde_json::{Number, Value, json};

use crate::extras;
use crate::gemini::OWN;
use crate::gemini::part_out::{Names, Purpose, encode as encode_part};
use crate::turns::turns;

pub fn encode(chat: &ChatRequest, ledger: &mut Ledger) -> Result<Value, Error> {
    let mut map = Map::new();
    match (&chat.model, chat.ext.note(OWN, "$model")) {
        (Some(model), Some(_)) => put(&mut map, "model", Some(model.clone())),
        (Some(_), None) => ledger.note(
            "/payload/model",
            Action::Renamed,
            "the model stands in the address",
        ),
        (None, _) => {}
    }
    let turns = turns(&chat.messages);
    put_contents(&turns, &mut map, ledger)?;
    put_tools(&chat.tools, &mut map, ledger);
    if let Some(choice) = &chat.tool_choice {
        let config = match choice {
            ToolChoice::Auto => json!({"mode": "AUTO"}),
            ToolChoice::None => json!({"mode": "NONE"}),
            ToolChoice::Required => json!({"mode": "ANY"}),
            ToolChoice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
        };
        put(
            &mut map,
            "toolConfig",
            Some(json!({"functionCallingConfig": config})),
        );
    }
    let mut config = Map::new();
    put_generation(&chat.generation, &mut config, ledger);
    put_format(chat, &mut config, ledger);
    put_reasoning(chat.reasoning.as_ref(), &mut config, ledger);
    if let Some(words) = chat.ext.value(OWN, "$modalities") {
        put(&mut config, "responseModalities", Some(words.clone()));
    } else if !chat.modalities.is_empty() {
        let words: Vec<String> = chat.modalities.iter().map(|word| word.to_uppercase()).collect();
        put(&mut config, "responseModalities", Some(words));
    }
    if !config.is_empty() {
        put(&mut map, "generationConfig", Some(config));
    }
    let lost = [
        ("parallel_tool_calls", chat.parallel_tool_calls == Some(false)),
        ("user", chat.user.is_some()),
        (
            "metadata",
            chat.metadata
                .as_ref()
                .is_some_and(|metadata| !metadata.is_empty()),
        ),
    ];
    for (key, _) in lost.iter().filter(|(_, there)| *there) {
        ledger.dropped(format!("/payload/{key}"), format!("{OWN} has no word for it"));
    }
    extras::book(chat, OWN, ledger);
    chat.ext.restore(OWN, &mut map);
    ledger.foreign("/payload", &chat.ext, OWN);
    Ok(Value::Object(map))
}

fn put(map: &mut Map, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        map.insert(String::from(key), value.into());
    }
}

fn put_contents(turns: &[Message], map: &mut Map, ledger: &mut Ledger) -> Result<(), Error> {
    let mut names = Names::new();
    let mut system: Option<Map> = None;
    let mut contents: Vec<Value> = Vec::new();
    let mut after_tool = false;
    for (at, message) in turns.iter().enumerate() {
        let pointer = format!("/payload/messages/{at}");
        names.extend(
            message
                .tool_calls()
                .map(|call| (call.id.clone(), call.name.clone())),
        );
        let mut parts = Vec::new();
        for (index, part) in message.parts.iter().enumerate() {
            let pointer = format!("{pointer}/content_parts/{index}");
            parts.extend(encode_part(part, Purpose::Replay, &names, &pointer, ledger)?);
        }
        book_message(message, &pointer, ledger);
        let role = match message.role {
            Role::System | Role::Developer => {
                if let Some(list) = system
                    .as_mut()
                    .and_then(|system| system.get_mut("parts")?.as_array_mut())
                {
                    ledger.note(
                        pointer,
                        Action::Merged,
                        format!("{OWN} has one system instruction"),
                    );
                    list.append(&mut parts);
                } else {
                    let mut instruction = Map::from_iter([(String::from("parts"), Value::Array(parts))]);
                    message.ext.restore(OWN, &mut instruction);
                    system = Some(instruction);
                }
                continue;
            }
            Role::Assistant => "model",
            Role::User => "user",
            Role::Tool if message.ext.get(OWN).is_some() => "function",
            Role::Tool => "user",
        };
        // All results of one turn stand in one content.
        if message.role == Role::Tool
            && after_tool
            && let Some(list) = contents
                .last_mut()
                .and_then(|last| last.get_mut("parts")?.as_array_mut())
        {
            list.append(&mut parts);
            continue;
        }
        after_tool = message.role == Role::Tool && role == "user";
        let mut content = Map::new();
        if message.ext.note(OWN, "$role").is_none() {
            put(&mut content, "role", Some(role));
        }
        if message.ext.note(OWN, "$parts").is_none() {
            put(&mut content, "parts", Some(parts));
        }
        message.ext.restore(OWN, &mut content);
        contents.push(Value::Object(content));
    }
    put(map, "systemInstruction", system);
    put(map, "contents", Some(contents));
    Ok(())
}

fn book_message(message: &Message, pointer: &str, ledger: &mut Ledger) {
    let lost = [
        ("id", message.id.is_some()),
        ("name", message.name.is_some()),
        ("created_at", message.created_at.is_some()),
        ("cache", message.cache.is_some()),
        ("metadata", message.metadata.is_some()),
    ];
    for (key, _) in lost.iter().filter(|(_, there)| *there) {
        ledger.dropped(format!("{pointer}/{key}"), format!("{OWN} has no word for it"));
    }
    ledger.foreign(pointer, &message.ext, OWN);
}

/// Functions that stood together stand together; those of other dialects all do.
fn put_tools(tools: &[ToolSpec], map: &mut Map, ledger: &mut Ledger) {
    let mut out: Vec<Value> = Vec::new();
    let mut group: Option<Option<&Value>> = None;
    for (at, tool) in tools.iter().enumerate() {
        let pointer = format!("/payload/tools/{at}");
        if let Some(hosted) = &tool.hosted {
            group = None;
            if hosted.dialect == OWN.as_str() {
                out.push(hosted.raw.clone());
            } else {
                ledger.dropped(pointer, format!("a tool that {} itself runs", hosted.dialect));
            }
            continue;
        }
        let declaration = encode_tool(tool, &pointer, ledger);
        let own = tool.ext.value(OWN, "$group");
        match out
            .last_mut()
            .and_then(|last| last.get_mut("functionDeclarations")?.as_array_mut())
        {
            Some(list) if group == Some(own) => list.push(declaration),
            _ => out.push(json!({"functionDeclarations": [declaration]})),
        }
        group = Some(own);
    }
    if !out.is_empty() {
        put(map, "tools", Some(out));
    }
}

fn encode_tool(tool: &ToolSpec, pointer: &str, ledger: &mut Ledger) -> Value {
    let mut map = Map::new();
    put(&mut map, "name", Some(tool.name.clone()));
    put(&mut map, "description", tool.description.clone());
    let key = tool.ext.note(OWN, "$schema").unwrap_or("parametersJsonSchema");
    put(&mut map, key, tool.parameters.clone());
    for (key, there) in [
        ("strict", tool.strict == Some(true)),
        ("cache", tool.cache.is_some()),
    ] {
        if there {
            ledger.dropped(format!("{pointer}/{key}"), format!("{OWN} has no word for it"));
        }
    }
    tool.ext.restore(OWN, &mut map);
    ledger.foreign(pointer, &tool.ext, OWN);
    Value::Object(map)
}

fn put_generation(knobs: &Generation, config: &mut Map, ledger: &mut Ledger) {
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
    put(config, "temperature", number(temperature));
    put(config, "topP", number(top_p));
    put(config, "topK", number(top_k));
    put(config, "maxOutputTokens", *max_tokens);
    if !stop.is_empty() {
        put(config, "stopSequences", Some(json!(stop)));
    }
    put(config, "seed", number(seed));
    put(config, "presencePenalty", number(presence_penalty));
    put(config, "frequencyPenalty", number(frequency_penalty));
    put(config, "candidateCount", *n);
    put(config, "responseLogprobs", *logprobs);
    put(config, "logprobs", *top_logprobs);
    if *stream == Some(true) {
        let pointer = "/payload/generation/stream";
        ledger.note(
            pointer,
            Action::Renamed,
            "the wish to stream stands in the address",
        );
    }
}

fn put_format(chat: &ChatRequest, config: &mut Map, ledger: &mut Ledger) {
    match &chat.response_format {
        Some(ResponseFormat::JsonObject) => put(config, "responseMimeType", Some("application/json")),
        Some(ResponseFormat::JsonSchema {
            name,
            description,
            schema,
            strict: _,
        }) => {
            put(config, "responseMimeType", Some("application/json"));
            let key = chat.ext.note(OWN, "$schema").unwrap_or("responseJsonSchema");
            put(config, key, Some(schema.clone()));
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

fn put_reasoning(reasoning: Option<&ReasoningRequest>, config: &mut Map, ledger: &mut Ledger) {
    let Some(ReasoningRequest {
        enabled,
        effort,
        budget_tokens,
        summary,
    }) = reasoning
    else {
        return;
    };
    let mut thinking = Map::new();
    put(&mut thinking, "thinkingLevel", effort.clone());
    let budget = budget_tokens.or_else(|| (*enabled == Some(false)).then_some(0));
    put(&mut thinking, "thinkingBudget", budget);
    if let Some(word) = summary {
        put(&mut thinking, "includeThoughts", Some(true));
        if word != "auto" {
            let pointer = "/payload/reasoning/summary";
            ledger.changed(
                pointer,
                Action::Replaced,
                json!(word),
                true,
                format!("{OWN} knows only yes and no"),
            );
        }
    }
    if !thinking.is_empty() {
        put(config, "thinkingConfig", Some(thinking));
    }
}
