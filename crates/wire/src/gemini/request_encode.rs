//! Encodes a request. The model and the stream flag are part of the URL, not of the body.

use ir::{
    Action, ChatRequest, Error, Generation, Ledger, Map, Message, ReasoningRequest, ResponseFormat, Role,
    ToolChoice, ToolSpec,
};
use serde_json::{Number, Value, json};

use crate::gemini::part_encode::{Names, Purpose, encode as encode_part};
use crate::gemini::schema::to_json_schema;
use crate::gemini::{OWN, field_case};
use crate::losses::{record_losses, record_message_losses};
use crate::optional_field::put;
use crate::turns::turns;
use crate::unknown_fields;

pub fn encode(chat: &ChatRequest, ledger: &mut Ledger) -> Result<Value, Error> {
    let mut map = Map::new();
    match (&chat.model, chat.ext.note(OWN, "$model")) {
        (Some(model), Some(_)) => put(&mut map, "model", Some(model.clone())),
        (Some(model), None) => ledger.changed(
            "/payload/model",
            Action::Renamed,
            json!(model),
            format!("models/{}", model.trim_start_matches("models/")),
            "the model is part of the URL",
        ),
        (None, _) => {}
    }
    let turns = turns(&chat.messages);
    put_contents(&turns, &mut map, ledger)?;
    put_tools(&chat.tools, &mut map, ledger);
    put_choice(chat.tool_choice.as_ref(), &mut map);
    let mut config = Map::new();
    put_generation(&chat.generation, &mut config, ledger);
    put_format(chat, &mut config, ledger);
    put_reasoning(chat, &mut config, ledger);
    put_modalities(chat, &mut config);
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
    record_losses(OWN, "/payload", &lost, ledger);
    unknown_fields::book(chat, OWN, ledger);
    chat.ext.restore(OWN, &mut map);
    ledger.foreign("/payload", &chat.ext, OWN);
    let mut body = Value::Object(map);
    field_case::write(&mut body, &chat.ext);
    Ok(body)
}

fn put_choice(choice: Option<&ToolChoice>, map: &mut Map) {
    let config = match choice {
        Some(ToolChoice::Auto) => json!({"mode": "AUTO"}),
        Some(ToolChoice::None) => json!({"mode": "NONE"}),
        Some(ToolChoice::Required) => json!({"mode": "ANY"}),
        Some(ToolChoice::Tool(name)) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
        None => return,
    };
    put(map, "toolConfig", Some(json!({"functionCallingConfig": config})));
}

fn put_modalities(chat: &ChatRequest, config: &mut Map) {
    if chat.modalities.is_empty() {
        return;
    }
    let noted = chat.ext.value(OWN, "$modalities").and_then(Value::as_array);
    let lower = |word: &Value| word.as_str().map(str::to_lowercase);
    let same = |list: &&Vec<Value>| list.iter().filter_map(lower).eq(chat.modalities.iter().cloned());
    let words = match noted.filter(same) {
        Some(list) => json!(list),
        None => chat.modalities.iter().map(|word| word.to_uppercase()).collect(),
    };
    put(config, "responseModalities", Some(words));
}

fn put_contents(turns: &[Message], map: &mut Map, ledger: &mut Ledger) -> Result<(), Error> {
    let mut names = Names::new();
    let leading = turns.iter().take_while(|message| is_system(message)).count();
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
        if is_system(message) {
            if at >= leading || system.is_some() {
                ledger.note(
                    &pointer,
                    Action::Merged,
                    format!("{OWN} has one system instruction"),
                );
            }
            put_system(message, parts, &mut system);
            continue;
        }
        // A message without any supported part is omitted.
        if parts.is_empty() && !message.parts.is_empty() {
            continue;
        }
        let noted = message.ext.note(OWN, "$role");
        let role = match message.role {
            Role::Assistant => "model",
            Role::Tool if noted == Some("function") => "function",
            _ => "user",
        };
        // All results of one turn are in one content.
        if message.role == Role::Tool
            && after_tool
            && let Some(list) = contents.last_mut().and_then(|last| last["parts"].as_array_mut())
        {
            list.append(&mut parts);
            continue;
        }
        after_tool = message.role == Role::Tool && role == "user";
        let mut content = Map::new();
        if noted != Some("absent") {
            put(&mut content, "role", Some(role));
        }
        if message.ext.note(OWN, "$parts").is_none() || !parts.is_empty() {
            put(&mut content, "parts", Some(parts));
        }
        message.ext.restore(OWN, &mut content);
        contents.push(Value::Object(content));
    }
    put(map, "systemInstruction", system);
    put(map, "contents", Some(contents));
    Ok(())
}

fn is_system(message: &Message) -> bool {
    matches!(message.role, Role::System | Role::Developer)
}

fn put_system(message: &Message, mut parts: Vec<Value>, system: &mut Option<Map>) {
    match system
        .as_mut()
        .and_then(|system| system.get_mut("parts")?.as_array_mut())
    {
        Some(list) => list.append(&mut parts),
        None => {
            let mut instruction = Map::from_iter([(String::from("parts"), Value::Array(parts))]);
            message.ext.restore(OWN, &mut instruction);
            *system = Some(instruction);
        }
    }
}

fn book_message(message: &Message, pointer: &str, ledger: &mut Ledger) {
    record_message_losses(OWN, pointer, message, ledger);
    ledger.foreign(pointer, &message.ext, OWN);
}

/// Preserves the original grouping; functions of other dialects form one group.
fn put_tools(tools: &[ToolSpec], map: &mut Map, ledger: &mut Ledger) {
    let mut out: Vec<(Option<&Value>, Value)> = Vec::new();
    for (at, tool) in tools.iter().enumerate() {
        let pointer = format!("/payload/tools/{at}");
        let group = tool.ext.value(OWN, "$group");
        let last = out.last_mut().filter(|(last, _)| *last == group);
        if let Some(hosted) = &tool.hosted {
            if hosted.dialect != OWN.as_str() {
                ledger.dropped(pointer, format!("a server-side tool of {}", hosted.dialect));
                continue;
            }
            match (last, &hosted.raw) {
                (Some((_, Value::Object(entry))), Value::Object(raw)) if group.is_some() => {
                    entry.extend(raw.clone());
                }
                _ => out.push((group, hosted.raw.clone())),
            }
            continue;
        }
        let declaration = encode_tool(tool, &pointer, ledger);
        match last.and_then(|(_, entry)| entry.get_mut("functionDeclarations")?.as_array_mut()) {
            Some(list) => list.push(declaration),
            None => {
                let entry = json!({"functionDeclarations": [declaration]});
                out.push((group, entry));
            }
        }
    }
    if !out.is_empty() {
        let tools: Vec<Value> = out.into_iter().map(|(_, entry)| entry).collect();
        put(map, "tools", Some(tools));
    }
}

fn encode_tool(tool: &ToolSpec, pointer: &str, ledger: &mut Ledger) -> Value {
    let mut map = Map::new();
    put(&mut map, "name", Some(tool.name.clone()));
    put(&mut map, "description", tool.description.clone());
    match (&tool.parameters, tool.ext.value(OWN, "$parameters")) {
        (Some(schema), Some(original)) if to_json_schema(original) == *schema => {
            put(&mut map, "parameters", Some(original.clone()));
        }
        (schema, _) => put(&mut map, "parametersJsonSchema", schema.clone()),
    }
    let lost = [
        ("strict", tool.strict == Some(true)),
        ("cache", tool.cache.is_some()),
    ];
    record_losses(OWN, pointer, &lost, ledger);
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
        let reason = "the stream flag is part of the URL";
        ledger.changed(pointer, Action::Renamed, true, "streamGenerateContent", reason);
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
            match chat.ext.value(OWN, "$responseSchema") {
                Some(original) if to_json_schema(original) == **schema => {
                    put(config, "responseSchema", Some(original.clone()));
                }
                _ => put(config, "responseJsonSchema", Some(Value::clone(schema))),
            }
            if name.is_some() {
                ledger.note(
                    "/payload/response_format/name",
                    Action::Merged,
                    "a schema has no name in this dialect",
                );
            }
            if description.is_some() {
                ledger.dropped(
                    "/payload/response_format/description",
                    format!("not supported by {OWN}"),
                );
            }
        }
        Some(ResponseFormat::Text) => put(config, "responseMimeType", Some("text/plain")),
        None => {}
    }
}

fn put_reasoning(chat: &ChatRequest, config: &mut Map, ledger: &mut Ledger) {
    let Some(ReasoningRequest {
        enabled,
        effort,
        budget_tokens,
        summary,
    }) = &chat.reasoning
    else {
        return;
    };
    let mut thinking = Map::new();
    let off = *enabled == Some(false) || effort.as_deref() == Some("none");
    let pointer = "/payload/reasoning/effort";
    match effort.as_deref() {
        Some("none") | None => {}
        Some(_) if off => ledger.dropped(pointer, "thinking is off"),
        Some(_) if budget_tokens.is_some() && chat.ext.note(OWN, "$thinkingLevel").is_none() => {
            ledger.dropped(pointer, format!("{OWN} accepts a budget or a level, not both"));
        }
        Some(word) => {
            let noted = chat.ext.note(OWN, "$thinkingLevel");
            let level = match (noted.filter(|noted| noted.to_lowercase() == word), word) {
                (Some(noted), _) => noted,
                (None, "xhigh" | "max") => {
                    ledger.changed(
                        pointer,
                        Action::Replaced,
                        word,
                        "high",
                        format!("{OWN} has no higher effort"),
                    );
                    "high"
                }
                (None, word) => word,
            };
            put(&mut thinking, "thinkingLevel", Some(level));
        }
    }
    let free = *enabled == Some(true) && effort.is_none();
    let budget = match budget_tokens {
        _ if off => Some(json!(0)),
        Some(budget) => Some(json!(budget)),
        None => free.then(|| json!(-1)),
    };
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
                format!("{OWN} supports only on and off"),
            );
        }
    }
    if !thinking.is_empty() {
        put(config, "thinkingConfig", Some(thinking));
    }
}
