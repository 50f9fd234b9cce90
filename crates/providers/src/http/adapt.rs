//! Adapts a request to one instance. Only declared features are used; missing ones are emulated where
//! possible, and every change is recorded.

use ir::adaptation::{Action, Ledger};
use ir::{ChatRequest, Error, ErrorKind, Feature, Message, PartBody, Phase, ResponseFormat, Role};

use super::HttpOptions;

pub(super) fn adapt(
    asked: &ChatRequest,
    model: String,
    options: &HttpOptions,
    ledger: &mut Ledger,
) -> Result<ChatRequest, Error> {
    let has = |feature: &Feature| options.features.contains(feature);
    let mut chat = asked.clone();
    chat.model = Some(model);
    if !chat.tools.is_empty() && !has(&Feature::Tools) {
        let message = format!("back-end {} is not declared to call tools", options.name);
        return Err(Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message));
    }
    if chat.streams() && !has(&Feature::Stream) {
        chat.generation.stream = Some(false);
        // A unary response has the same content, so this is not a loss.
        let reason = "the back-end is not declared to stream";
        ledger.note("/payload/generation/stream", Action::Merged, reason);
    }
    if chat.generation.seed.is_some() && !has(&Feature::Seed) {
        chat.generation.seed = None;
        ledger.dropped(
            "/payload/generation/seed",
            "the back-end is not declared to accept a seed",
        );
    }
    if !has(&Feature::JsonSchema) {
        schema_by_prompt(&mut chat, ledger);
    }
    if !has(&Feature::SystemRole) {
        system_to_user(&mut chat, ledger);
    }
    Ok(chat)
}

/// Whether [`adapt`] would change anything except the model, or return an error.
pub(super) fn must_adapt(asked: &ChatRequest, options: &HttpOptions) -> bool {
    let has = |feature: &Feature| options.features.contains(feature);
    let is_system = |message: &Message| message.role == Role::System;
    let lacks = [
        (!asked.tools.is_empty(), Feature::Tools),
        (asked.streams(), Feature::Stream),
        (asked.generation.seed.is_some(), Feature::Seed),
        (
            matches!(asked.response_format, Some(ResponseFormat::JsonSchema { .. })),
            Feature::JsonSchema,
        ),
        (asked.messages.iter().any(is_system), Feature::SystemRole),
    ];
    lacks.iter().any(|(wanted, feature)| *wanted && !has(feature))
}

/// Moves the response schema into the prompt.
fn schema_by_prompt(chat: &mut ChatRequest, ledger: &mut Ledger) {
    let is_schema = |format: &mut ResponseFormat| matches!(format, ResponseFormat::JsonSchema { .. });
    let Some(ResponseFormat::JsonSchema { schema, .. }) = chat.response_format.take_if(is_schema) else {
        return;
    };
    let text =
        format!("Answer with one JSON object and nothing around it. It must fit this JSON Schema:\n{schema}");
    let systems = chat
        .messages
        .iter()
        .take_while(|message| message.role == Role::System);
    let at = systems.count();
    chat.messages.insert(at, Message::text(Role::System, text));
    let reason = "the back-end does not enforce a schema; the schema is in the prompt";
    ledger.dropped("/payload/response_format", reason);
}

/// Moves the system messages to the beginning of the first user message.
fn system_to_user(chat: &mut ChatRequest, ledger: &mut Ledger) {
    let (system, mut others): (Vec<_>, Vec<_>) = std::mem::take(&mut chat.messages)
        .into_iter()
        .partition(|message| message.role == Role::System);
    let mut parts: Vec<_> = system.into_iter().flat_map(|message| message.parts).collect();
    if !parts.is_empty() {
        let reason = "the back-end accepts no system prompt; it was moved to the first user message";
        ledger.note("/payload/messages", Action::Replaced, reason);
        for part in &mut parts {
            if let PartBody::Text(text) = &mut part.body {
                text.push_str("\n\n");
            }
        }
        match others.iter_mut().find(|message| message.role == Role::User) {
            Some(first) => {
                parts.append(&mut first.parts);
                first.parts = parts;
            }
            None => {
                let mut first = Message::text(Role::User, "");
                first.parts = parts;
                others.insert(0, first);
            }
        }
    }
    chat.messages = others;
}
