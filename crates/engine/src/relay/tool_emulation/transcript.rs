//! Earlier tool calls and results as text, in the form that the prompt asks the model for. All other content
//! keeps its form and position; the images of a result follow its text.

use std::collections::BTreeMap;

use ir::chat::ToolResult;
use ir::{Content, Message, Part, PartBody, Role, ToolCall};
use serde_json::{Value, json};

/// By call id: the position of the call in its message (from 1) and its tool name.
type Known = BTreeMap<String, (usize, String)>;

/// Returns whether the messages contained any tool call or result.
pub(super) fn write_out(messages: &mut Vec<Message>) -> bool {
    if !messages.iter().any(Message::uses_tools) {
        return false;
    }
    let mut known = Known::new();
    let mut results = Vec::new();
    let mut written = Vec::with_capacity(messages.len());
    for mut message in turns(std::mem::take(messages)) {
        if !message.uses_tools() {
            written.extend(results_message(&mut results, Vec::new()));
            written.push(message);
            continue;
        }
        let calls = message.tool_calls().enumerate();
        known.extend(calls.map(|(at, call)| (call.id.clone(), (at + 1, call.name.clone()))));
        let parts = std::mem::take(&mut message.parts);
        let parts = without_results(parts, &known, &mut results);
        match message.role {
            // Results of one turn may come in several messages; they are merged.
            Role::Tool | Role::User if parts.is_empty() => {}
            Role::Tool | Role::User => written.extend(results_message(&mut results, parts)),
            Role::Assistant | Role::System | Role::Developer => {
                written.extend(results_message(&mut results, Vec::new()));
                written.push(with_parts(message, merge_calls(parts)));
            }
        }
    }
    written.extend(results_message(&mut results, Vec::new()));
    *messages = written;
    true
}

/// Merges the messages of one assistant turn that contains calls: some dialects send every call as a message
/// of its own.
fn turns(messages: Vec<Message>) -> Vec<Message> {
    let mut turns: Vec<Message> = Vec::with_capacity(messages.len());
    for message in messages {
        match turns.last_mut() {
            Some(last)
                if last.role == Role::Assistant
                    && message.role == Role::Assistant
                    && (last.uses_tools() || message.uses_tools()) =>
            {
                last.parts.extend(message.parts);
            }
            _ => turns.push(message),
        }
    }
    turns
}

/// Moves the results to `results`. Their parts other than text stay, before all other parts.
fn without_results(parts: Vec<Part>, known: &Known, results: &mut Vec<Value>) -> Vec<Part> {
    let (mut shown, mut others) = (Vec::new(), Vec::new());
    for part in parts {
        match part.body {
            PartBody::ToolResult(result) => {
                results.push(result_json(&result, known));
                shown.extend(result.content.into_iter().filter(|part| part.as_text().is_none()));
            }
            _ => others.push(part),
        }
    }
    shown.append(&mut others);
    shown
}

/// The collected results as a user message, followed by the other parts of the user's message.
fn results_message(results: &mut Vec<Value>, others: Vec<Part>) -> Option<Message> {
    let mut parts = Vec::new();
    if !results.is_empty() {
        let mut text = json!({"results": std::mem::take(results)}).to_string();
        if !others.is_empty() {
            text.push_str("\n\n");
        }
        parts.push(Part::text(text));
    }
    parts.extend(others);
    let message = Message::new(Role::User, Vec::new());
    (!parts.is_empty()).then(|| with_parts(message, parts))
}

fn result_json(result: &ToolResult, known: &Known) -> Value {
    let call = known.get(&result.call_id);
    let mut line = json!({});
    if let Some((at, _)) = call {
        line["call"] = json!(at);
    }
    if let Some(name) = result.name.as_ref().or_else(|| call.map(|(_, name)| name)) {
        line["tool"] = json!(name);
    }
    if !result.outcome.is_success() {
        line["outcome"] = json!(result.outcome);
    }
    line["content"] = Value::from(result.joined_text());
    line
}

/// Merges adjacent calls into one text.
fn merge_calls(parts: Vec<Part>) -> Vec<Part> {
    let mut written: Vec<Part> = Vec::new();
    let mut calls: Vec<String> = Vec::new();
    for part in parts {
        match &part.body {
            PartBody::ToolCall(call) => calls.push(call_text(call)),
            _ => {
                written.extend(calls_text(&mut calls, written.is_empty()));
                written.push(part);
            }
        }
    }
    let first = written.is_empty();
    written.extend(calls_text(&mut calls, first));
    written
}

fn calls_text(calls: &mut Vec<String>, first: bool) -> Option<Part> {
    if calls.is_empty() {
        return None;
    }
    let text = format!("{{\"calls\":[{}]}}", std::mem::take(calls).join(","));
    Some(Part::text(match first {
        true => text,
        false => format!("\n{text}"),
    }))
}

/// The arguments byte for byte if they are JSON, else as a JSON string.
fn call_text(call: &ToolCall) -> String {
    let name = Value::from(call.name.as_str());
    match &call.arguments {
        Some(_) if !call.arguments_raw.trim().is_empty() => {
            let raw = call.arguments_raw.trim();
            format!("{{\"tool\":{name},\"arguments\":{raw}}}")
        }
        Some(value) => format!("{{\"tool\":{name},\"arguments\":{value}}}"),
        None => {
            let raw = Value::from(call.arguments_raw.as_str());
            format!("{{\"tool\":{name},\"arguments\":{raw}}}")
        }
    }
}

/// A single plain text is sent as a string: some servers accept nothing else.
fn with_parts(message: Message, parts: Vec<Part>) -> Message {
    let plain = matches!(parts.as_slice(), [part] if part.plain_text().is_some());
    Message {
        content: if plain { Content::Text } else { Content::Parts },
        parts,
        ..message
    }
}
