//! Tools as part of the prompt: name, description, parameters, and how to call them.

use ir::adaptation::Ledger;
use ir::chat::ToolSpec;
use ir::{ChatRequest, Error, Message, ResponseFormat, Role, ToolChoice};
use serde_json::{Value, json};

/// The mode of tool calling.
#[derive(Clone, Copy, Debug)]
pub(super) struct ToolMode {
    /// Several calls are allowed.
    pub(super) many: bool,
    /// A call is required.
    pub(super) must: bool,
    /// The back-end supports JSON schemas.
    pub(super) held_to_schema: bool,
}

/// The callable tools. A choice of one tool selects that one.
pub(super) fn offered<'a>(tools: &'a [ToolSpec], choice: &ToolChoice) -> Result<Vec<&'a ToolSpec>, Error> {
    match choice {
        ToolChoice::None => Ok(Vec::new()),
        ToolChoice::Auto | ToolChoice::Required => Ok(tools.iter().collect()),
        ToolChoice::Tool(name) => match tools.iter().find(|tool| tool.name == *name) {
            Some(tool) => Ok(vec![tool]),
            None => {
                let message = format!("`tool_choice` names the unknown tool `{name}`");
                Err(Error::invalid_request(message))
            }
        },
    }
}

/// Inserts the tools after the system messages. If a call is required and the back-end supports JSON schemas,
/// the form of the call is enforced by one. If calls are optional, a response schema moves to the prompt,
/// because a back-end that enforces it could not call a tool.
pub(super) fn describe(chat: &mut ChatRequest, offered: &[&ToolSpec], manner: ToolMode, ledger: &mut Ledger) {
    let ToolMode {
        many,
        must,
        held_to_schema,
    } = manner;
    let mut text = String::from(
        "You can call tools. Each line describes one: its name, what it does, and the JSON Schema of its arguments.\n",
    );
    for tool in offered {
        text.push_str(&tool_json(tool).to_string());
        text.push('\n');
    }
    text.push_str(
        "To call, answer with one JSON object and nothing around it, no words and no code fence:\n\
         {\"calls\":[{\"tool\":\"NAME\",\"arguments\":{}}]}\n",
    );
    text.push_str(match many {
        true => "Several calls may stand in the list. ",
        false => "Only one call may stand in the list. ",
    });
    text.push_str("The results are then given to you in a JSON object with `results`.\n");
    text.push_str(match must {
        true => "You must call now, and say nothing else.",
        false => "If you need no tool, answer as if there were none, and not in this form.",
    });
    let is_schema = |format: &mut ResponseFormat| matches!(format, ResponseFormat::JsonSchema { .. });
    if must {
        // The requested format applies to an answer, and this reply is a call.
        chat.response_format = held_to_schema.then(|| call_format(offered, many));
    } else if let Some(ResponseFormat::JsonSchema { schema, .. }) = chat.response_format.take_if(is_schema) {
        text.push_str(
            " Such an answer is one JSON object with nothing around it, and fits this JSON Schema:\n",
        );
        text.push_str(&schema.to_string());
        let reason = "tools are emulated by prompt, so the response schema is in the prompt too";
        ledger.dropped("/payload/response_format", reason);
    }
    let systems = chat
        .messages
        .iter()
        .take_while(|message| matches!(message.role, Role::System | Role::Developer));
    let at = systems.count();
    chat.messages.insert(at, Message::text(Role::System, text));
}

fn tool_json(tool: &ToolSpec) -> Value {
    let mut line = json!({"tool": tool.name});
    if let Some(description) = &tool.description {
        line["description"] = json!(description);
    }
    line["arguments"] = arguments(tool);
    line
}

fn arguments(tool: &ToolSpec) -> Value {
    let any = || json!({"type": "object"});
    tool.parameters.clone().unwrap_or_else(any)
}

/// The schema of a call.
fn call_format(offered: &[&ToolSpec], many: bool) -> ResponseFormat {
    let one = |tool: &&ToolSpec| {
        // A `$ref` is resolved from the root of its own schema, and this is another document.
        let arguments = Some(arguments(tool)).filter(|schema| !has_ref(schema));
        json!({
            "type": "object",
            "properties": {
                "tool": {"type": "string", "enum": [tool.name]},
                "arguments": arguments.unwrap_or_else(|| json!({"type": "object"})),
            },
            "required": ["tool", "arguments"],
            "additionalProperties": false,
        })
    };
    let mut each: Vec<Value> = offered.iter().map(one).collect();
    let item = match each.len() {
        1 => each.swap_remove(0),
        _ => json!({"anyOf": each}),
    };
    let mut calls = json!({"type": "array", "minItems": 1, "items": item});
    if !many {
        calls["maxItems"] = json!(1);
    }
    ResponseFormat::JsonSchema {
        name: Some(String::from("calls")),
        description: None,
        schema: json!({
            "type": "object",
            "properties": {"calls": calls},
            "required": ["calls"],
            "additionalProperties": false,
        })
        .into(),
        strict: None,
    }
}

fn has_ref(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.contains_key("$ref") || map.values().any(has_ref),
        Value::Array(list) => list.iter().any(has_ref),
        _ => false,
    }
}
