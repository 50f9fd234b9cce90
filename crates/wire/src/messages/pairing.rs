//! Pairing of tool calls and results: every call must be followed directly by its result, in the order of the
//! calls. This finds violations in a history, and can insert an error result for each missing one, so that a
//! history cut short by a crash is still accepted by models.

use std::collections::BTreeSet;

use ir::{Message, Part, PartBody, Role, ToolOutcome, ToolResult};
use serde_json::json;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PairingError {
    /// The call at `message` has no result directly after it.
    MissingResult { message: usize, call_id: String },
    /// The result at `message` belongs to no call directly before it.
    OrphanResult { message: usize, call_id: String },
    /// The result at `message` belongs to a call that already has one.
    DoubleResult { message: usize, call_id: String },
    /// The results are present in another order than the calls.
    OutOfOrder { message: usize, call_id: String },
    /// Two calls of one message share an id.
    DoubleCall { message: usize, call_id: String },
}

/// A call without a result so far.
struct Open {
    message: usize,
    /// Its position among the calls of its message.
    number: usize,
    id: String,
}

fn results(message: &Message) -> impl Iterator<Item = &ToolResult> {
    message.parts.iter().filter_map(|part| match &part.body {
        PartBody::ToolResult(result) => Some(result),
        _ => None,
    })
}

/// Messages that contain only results.
fn is_answer(message: &Message) -> bool {
    results(message).count() == message.parts.len() && !message.parts.is_empty()
}

/// All pairing errors, in the order of the messages.
pub fn check_pairs(messages: &[Message]) -> Vec<PairingError> {
    let mut found = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    let mut answered = BTreeSet::new();
    let mut last = 0;
    for (at, message) in messages.iter().enumerate() {
        for result in results(message) {
            let call_id = result.call_id.clone();
            match open.iter().position(|call| call.id == call_id) {
                Some(place) => {
                    let number = open.remove(place).number;
                    if number < last {
                        found.push(PairingError::OutOfOrder {
                            message: at,
                            call_id: call_id.clone(),
                        });
                    }
                    last = last.max(number);
                }
                None if answered.contains(&call_id) => {
                    found.push(PairingError::DoubleResult {
                        message: at,
                        call_id: call_id.clone(),
                    });
                }
                None => found.push(PairingError::OrphanResult {
                    message: at,
                    call_id: call_id.clone(),
                }),
            }
            answered.insert(call_id);
        }
        if !is_answer(message) {
            close(&mut open, &mut found);
            answered.clear();
            last = 0;
        }
        for (number, call) in message.tool_calls().enumerate() {
            let id = call.id.clone();
            if open.iter().any(|call| call.id == id) {
                found.push(PairingError::DoubleCall {
                    message: at,
                    call_id: id,
                });
            } else {
                open.push(Open {
                    message: at,
                    number,
                    id,
                });
            }
        }
    }
    close(&mut open, &mut found);
    found
}

fn close(open: &mut Vec<Open>, found: &mut Vec<PairingError>) {
    let missing = |call: Open| PairingError::MissingResult {
        message: call.message,
        call_id: call.id,
    };
    found.extend(open.drain(..).map(missing));
}

/// Inserts an error after the results of a message for each of its calls without one. Returns how many.
pub fn complete_pairs(messages: &mut Vec<Message>) -> usize {
    let missing: Vec<(usize, String)> = check_pairs(messages)
        .into_iter()
        .filter_map(|found| match found {
            PairingError::MissingResult { message, call_id } => Some((message, call_id)),
            _ => None,
        })
        .collect();
    // From the end, so that earlier indexes stay valid.
    for (at, call_id) in missing.iter().rev() {
        let name = messages.get(*at).and_then(|message| {
            let mut calls = message.tool_calls();
            calls
                .find(|call| call.id == *call_id)
                .map(|call| call.name.clone())
        });
        let behind = messages
            .iter()
            .skip(at + 1)
            .take_while(|message| is_answer(message));
        let place = at + 1 + before(messages, *at, call_id).min(behind.count());
        messages.insert(place, synthesised(call_id, name));
    }
    missing.len()
}

/// How many of the results after a message belong to calls before this one.
fn before(messages: &[Message], at: usize, call_id: &str) -> usize {
    let earlier: BTreeSet<&str> = messages
        .get(at)
        .into_iter()
        .flat_map(Message::tool_calls)
        .map(|call| call.id.as_str())
        .take_while(|id| *id != call_id)
        .collect();
    messages
        .iter()
        .skip(at + 1)
        .take_while(|message| is_answer(message))
        .take_while(|message| results(message).all(|result| earlier.contains(result.call_id.as_str())))
        .count()
}

fn synthesised(call_id: &str, name: Option<String>) -> Message {
    let text = json!({
        "status": "error",
        "error_type": "MissingResult",
        "message": "The call was made, but no result of it was recorded. It may or may not have run.",
    });
    let result = ToolResult {
        call_id: String::from(call_id),
        name: name.clone(),
        outcome: ToolOutcome::Error,
        content: vec![Part::text(text.to_string())],
    };
    Message {
        name,
        ..Message::new(Role::Tool, vec![Part::from(PartBody::ToolResult(result))])
    }
}
