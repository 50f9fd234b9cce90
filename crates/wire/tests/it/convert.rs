//! Conversions for snapshots: the document in the other dialect, and its losses.

use ir::{Action, ChatRequest, ChatResponse, Component, Dialect, Ledger, Loss};
use serde_json::{Value, json};
use wire::chat;

use crate::fixtures::fixtures;

/// Losses and renamed fields, as `action pointer: reason`.
pub(crate) fn booked(ledger: &Ledger) -> Vec<String> {
    let line = |loss: Loss| {
        let action = serde_json::to_value(loss.action).unwrap();
        format!("{} {}: {}", action.as_str().unwrap(), loss.pointer, loss.reason)
    };
    ledger
        .entries()
        .iter()
        .map(|entry| line(Loss::from(entry)))
        .collect()
}

pub(crate) fn fixture(dialect: Dialect, name: &str, suffix: &str) -> Value {
    let found = fixtures(dialect, suffix)
        .into_iter()
        .find(|(stem, _)| stem == name);
    found.unwrap_or_else(|| panic!("{dialect}/{name}{suffix}")).1
}

pub(crate) fn request(dialect: Dialect, name: &str) -> ChatRequest {
    chat::decode_request(dialect, fixture(dialect, name, ".request.json")).unwrap()
}

pub(crate) fn response(dialect: Dialect, name: &str) -> ChatResponse {
    chat::decode_response(dialect, fixture(dialect, name, ".response.json")).unwrap()
}

pub(crate) fn request_into(dialect: Dialect, request: &ChatRequest) -> Value {
    let mut ledger = Ledger::new(Component::Adapter);
    let body = chat::encode_request(dialect, request, &mut ledger);
    let body = body.unwrap_or_else(|error| json!({"error": error.message}));
    json!({"body": body, "booked": booked(&ledger)})
}

pub(crate) fn response_into(dialect: Dialect, response: &ChatResponse) -> Value {
    let mut ledger = Ledger::new(Component::Adapter);
    let body = chat::encode_response(dialect, response, &mut ledger);
    let body = body.unwrap_or_else(|error| json!({"error": error.message}));
    json!({"body": body, "booked": booked(&ledger)})
}

/// Whether this pointer was recorded as a loss.
pub(crate) fn lost(converted: &Value, pointer: &str) -> bool {
    let gone = [Action::Dropped, Action::Replaced, Action::Clamped];
    let starts: Vec<String> = gone
        .iter()
        .map(|action| {
            format!(
                "{} {pointer}:",
                serde_json::to_value(action).unwrap().as_str().unwrap()
            )
        })
        .collect();
    let mut lines = converted["booked"].as_array().unwrap().iter();
    lines.any(|line| {
        starts
            .iter()
            .any(|start| line.as_str().unwrap().starts_with(start))
    })
}
