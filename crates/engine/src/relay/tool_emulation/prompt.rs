//! Tools as a part of the prompt: what each is called, what it does, what it takes, and how it is called.

use ir::adaptation::Ledger;
use ir::chat::ToolSpec;
use ir::{ChatRequest, Error, Message, ResponseFormat, Role, ToolChoice};
use serde_json::{Value, json};

/// How tools are to be called.
#[derive(Clone, Copy, Debug)]
pub(super) struct ToolMode {
    /// More than one at once.
    pub(super) many: bool,
    /// Plain text is not what was asked for.
    pub(super) must: bool,
    /// The back-end can be held to a schema.
    pub(super) held_to_schema: bool,
}

/// The tools that may be called. A choice that names one leaves that one.
pub(super) fn offered<'a>(tools: &'a [ToolSpec], choice: &ToolChoice) -> Result<Vec<&'a ToolSpec>, Error> {
    match choice {
        ToolChoice::None => Ok(Vec::new()),
        ToolChoice::Auto | ToolChoice::Required => Ok(tools.iter().collect()),
        ToolChoice::Tool(name) => match tools.iter().find(|tool| tool.name == *name) {
            Some(tool) => Ok(vec![tool]),
            None => {
                let message = format!("`tool_choice` names `{name}`, and no tool is called that");
                Err(Error::invalid_request(message))
            }
        },
    }
}

/// Puts the tools behind what the system says. An answer that must be a call is held to its form where the
/// back-end can be held to one; else a form that was asked for moves to the prompt, because a back-end that is
/// held to it could not call anything.
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
        text.push_str(&line(tool).to_string());
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
        // What was asked for is the form of an answer, and this one is a call.
        chat.response_format = held_to_schema.then(|| call_format(offered, many));
    } else if let Some(ResponseFormat::JsonSchema { schema, .. }) = chat.response_format.take_if(is_schema) {
        text.push_str(
            " Such an answer is one JSON object with nothing around it, and fits this JSON Schema:\n",
        );
        text.push_str(&schema.to_string());
        let reason = "tools are called by prompt, so the form of the answer is in the prompt as well";
        ledger.dropped("/payload/response_format", reason);
    }
    let systems = chat
        .messages
        .iter()
        .take_while(|message| matches!(message.role, Role::System | Role::Developer));
    let at = systems.count();
    chat.messages.insert(at, Message::text(Role::System, text));
}

fn line(tool: &ToolSpec) -> Value {
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

/// The form of a call as a schema.
fn call_format(offered: &[&ToolSpec], many: bool) -> ResponseFormat {
    let one = |tool: &&ToolSpec| {
        // A reference leads from the root of its own schema, and this is another document.
        let arguments = Some(arguments(tool)).filter(|schema| !refers(schema));
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

fn refers(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.contains_key("$ref") || map.values().any(refers),
        Value::Array(list) => list.iter().any(refers),
        _ => false,
    }
}
