//! Decodes a request. The system instruction becomes the first message.

use ir::{
    ChatRequest, Error, Fields, Generation, Message, ReasoningRequest, ResponseFormat, Role, ToolChoice,
    ToolSpec,
};
use serde_json::{Value, json};

use crate::call_id::CallIds;
use crate::gemini::schema::to_json_schema;
use crate::gemini::{OWN, field_case, part_decode};

pub fn decode(mut body: Value) -> Result<ChatRequest, Error> {
    let mut chat = ChatRequest::default();
    field_case::read(&mut body, &mut chat.ext);
    let mut fields = Fields::of(body).ok_or_else(|| Error::invalid_request("the body is not an object"))?;
    let contents = fields
        .array("contents")
        .ok_or_else(|| Error::invalid_request("`contents` is missing"))?;
    if let Some(model) = fields.string("model") {
        chat.model = Some(model);
        chat.ext.set(OWN, "$model", "body");
    }
    let mut calls = CallIds::new(OWN);
    if fields
        .peek("systemInstruction")
        .is_some_and(|system| system["parts"].is_array())
        && let Some(system) = fields.object("systemInstruction")
    {
        chat.messages.push(message(system, Role::System, &mut calls));
    }
    for content in contents {
        let mut content = Fields::of(content)
            .ok_or_else(|| Error::invalid_request("an entry of `contents` must be an object"))?;
        let word = content.string("role");
        let role = match word.as_deref() {
            Some("user") | None => Role::User,
            Some("model") => Role::Assistant,
            Some("function") => Role::Tool,
            Some(other) => return Err(Error::invalid_request(format!("unknown role `{other}`"))),
        };
        if !content.peek("parts").is_none_or(Value::is_array) {
            return Err(Error::invalid_request("`parts` must be a list"));
        }
        let mut message = message(content, role, &mut calls);
        match word.as_deref() {
            None => message.ext.set(OWN, "$role", "absent"),
            Some("function") => message.ext.set(OWN, "$role", "function"),
            _ => {}
        }
        chat.messages.push(message);
    }
    tools(&mut fields, &mut chat);
    if let Some(mut config) = fields.object("generationConfig") {
        if config.is_empty() {
            fields.put_back("generationConfig", json!({}));
        }
        generation(&mut config, &mut chat);
        format(&mut config, &mut chat);
        thinking(&mut config, &mut chat);
        fields.keep("generationConfig", config);
    }
    chat.ext.extend(OWN, fields.rest());
    Ok(chat)
}

fn message(mut content: Fields, role: Role, calls: &mut CallIds) -> Message {
    let list = content.array("parts");
    let mut message = Message::new(role, Vec::new());
    if list.is_none() {
        message.ext.set(OWN, "$parts", "absent");
    }
    let parts = list.unwrap_or_default().into_iter();
    message.parts = parts.map(|part| part_decode::decode(part, calls)).collect();
    message.ext.extend(OWN, content.rest());
    message
}

fn tools(fields: &mut Fields, chat: &mut ChatRequest) {
    match fields.array("tools") {
        Some(list) if list.is_empty() => fields.put_back("tools", Value::Array(list)),
        Some(list) => {
            for (group, tool) in list.into_iter().enumerate() {
                tool_group(tool, group, &mut chat.tools);
            }
        }
        None => {}
    }
    let choice = fields.peek("toolConfig").and_then(|config| {
        let map = config.get("functionCallingConfig")?.as_object()?;
        let names = map.get("allowedFunctionNames").and_then(Value::as_array);
        let choice = match (map.get("mode")?.as_str()?, names.map(Vec::as_slice)) {
            ("AUTO", None) => ToolChoice::Auto,
            ("NONE", None) => ToolChoice::None,
            ("ANY", None) => ToolChoice::Required,
            ("ANY", Some([Value::String(name)])) => ToolChoice::Tool(name.clone()),
            _ => return None,
        };
        let exact = map.len() == 1 + usize::from(names.is_some()) && config.as_object()?.len() == 1;
        exact.then_some(choice)
    });
    if choice.is_some() {
        chat.tool_choice = choice;
        fields.take("toolConfig");
    }
}

/// One entry contains any number of functions and, in addition, tools that the provider runs.
fn tool_group(tool: Value, group: usize, tools: &mut Vec<ToolSpec>) {
    let declared = tool.get("functionDeclarations").and_then(Value::as_array);
    let declared: Option<Vec<ToolSpec>> = declared
        .filter(|list| !list.is_empty())
        .and_then(|list| list.iter().map(|value| declaration(value, group)).collect());
    let Some(declared) = declared else {
        return tools.push(ToolSpec::hosted(OWN, tool));
    };
    tools.extend(declared);
    let mut rest = Fields::of(tool).unwrap_or_default();
    rest.take("functionDeclarations");
    if !rest.is_empty() {
        let mut hosted = ToolSpec::hosted(OWN, Value::Object(rest.rest()));
        hosted.ext.set(OWN, "$group", group);
        tools.push(hosted);
    }
}

fn declaration(value: &Value, group: usize) -> Option<ToolSpec> {
    let mut fields = Fields::of(value.clone())?;
    let mut tool = ToolSpec {
        name: fields.string("name")?,
        ..ToolSpec::default()
    };
    tool.description = fields.string("description");
    if let Some(schema) = fields.object("parametersJsonSchema") {
        tool.parameters = Some(Value::Object(schema.rest()));
    } else if let Some(schema) = fields.object("parameters") {
        let original = Value::Object(schema.rest());
        tool.parameters = Some(to_json_schema(&original));
        tool.ext.set(OWN, "$parameters", original);
    }
    tool.ext.set(OWN, "$group", group);
    tool.ext.extend(OWN, fields.rest());
    Some(tool)
}

fn generation(config: &mut Fields, chat: &mut ChatRequest) {
    chat.generation = Generation {
        temperature: config.number("temperature"),
        top_p: config.number("topP"),
        top_k: config.number("topK"),
        max_tokens: config.u64("maxOutputTokens"),
        seed: config.number("seed"),
        presence_penalty: config.number("presencePenalty"),
        frequency_penalty: config.number("frequencyPenalty"),
        n: config.u64("candidateCount"),
        logprobs: config.bool("responseLogprobs"),
        top_logprobs: config.u64("logprobs"),
        ..Generation::default()
    };
    match config.strings("stopSequences") {
        Some(list) if list.is_empty() => config.put_back("stopSequences", json!([])),
        Some(list) => chat.generation.stop = list,
        None => {}
    }
    match config.strings("responseModalities") {
        Some(list) if list.is_empty() => config.put_back("responseModalities", json!([])),
        Some(list) => {
            chat.ext.set(OWN, "$modalities", json!(list));
            chat.modalities = list.iter().map(|word| word.to_lowercase()).collect();
        }
        None => {}
    }
}

fn format(config: &mut Fields, chat: &mut ChatRequest) {
    let schemas = ["responseJsonSchema", "responseSchema"];
    let key = schemas
        .into_iter()
        .find(|key| config.peek(key).is_some_and(Value::is_object));
    let format = match (config.peek_str("responseMimeType"), key) {
        (Some("text/plain"), None) => ResponseFormat::Text,
        (Some("application/json"), None) => ResponseFormat::JsonObject,
        (Some("application/json"), Some(key)) => {
            let original = config.take(key).unwrap_or_default();
            let schema = if key == "responseSchema" {
                let schema = to_json_schema(&original);
                chat.ext.set(OWN, "$responseSchema", original);
                schema
            } else {
                original
            };
            ResponseFormat::JsonSchema {
                name: None,
                description: None,
                schema: schema.into(),
                strict: None,
            }
        }
        _ => return,
    };
    config.take("responseMimeType");
    chat.response_format = Some(format);
}

/// A budget of 0 disables thinking, -1 leaves the amount to the model. With a level both are preserved as is.
fn thinking(config: &mut Fields, chat: &mut ChatRequest) {
    let Some(mut thinking) = config.object("thinkingConfig") else {
        return;
    };
    let mut reasoning = ReasoningRequest::default();
    if let Some(word) = thinking.string("thinkingLevel") {
        reasoning.effort = Some(word.to_lowercase());
        chat.ext.set(OWN, "$thinkingLevel", word);
    }
    let budget = thinking.peek("thinkingBudget").and_then(Value::as_i64);
    match (budget, &reasoning.effort) {
        (Some(0), None) => reasoning.enabled = Some(false),
        (Some(-1), None) => reasoning.enabled = Some(true),
        (Some(1..), _) => reasoning.budget_tokens = thinking.u64("thinkingBudget"),
        _ => {}
    }
    if reasoning.enabled.is_some() {
        thinking.take("thinkingBudget");
    }
    if thinking.peek("includeThoughts") == Some(&Value::Bool(true)) {
        thinking.take("includeThoughts");
        reasoning.summary = Some(String::from("auto"));
    }
    if reasoning == ReasoningRequest::default() {
        return config.put_back("thinkingConfig", Value::Object(thinking.rest()));
    }
    chat.reasoning = Some(reasoning);
    config.keep("thinkingConfig", thinking);
}
