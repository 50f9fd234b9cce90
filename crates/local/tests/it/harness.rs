//! Calls an embedded model and collects its events.

use std::sync::Arc;

use engine::port::{EventStream, Upstream};
use futures::StreamExt;
use ir::event::{Delta, Warning};
use ir::{
    ChatRequest, Error, Event, FinishReason, Generation, Message, Request, ResponseFormat, Role, Usage,
};
use local::{LocalUpstream, Options};
use serde_json::Value;

/// A back-end with the small model. All back-ends of a test binary share one loaded model.
pub(crate) fn small() -> LocalUpstream {
    LocalUpstream::new(&options())
}

pub(crate) fn options() -> Options {
    let mut options = Options::new("embedded", "smollm2", testkit::language_model::small_model());
    options.context_tokens = 2048;
    // Tests share one model and run concurrently.
    options.queue_max = 64;
    options
}

pub(crate) fn chat(text: &str) -> ChatRequest {
    ChatRequest {
        messages: vec![
            Message::text(Role::System, "You answer briefly."),
            Message::text(Role::User, text),
        ],
        generation: Generation {
            max_tokens: Some(48),
            ..Generation::default()
        },
        ..ChatRequest::default()
    }
}

pub(crate) fn held_to(mut chat: ChatRequest, schema: Value) -> ChatRequest {
    chat.response_format = Some(ResponseFormat::JsonSchema {
        name: None,
        description: None,
        schema: schema.into(),
        strict: None,
    });
    chat
}

pub(crate) fn open(local: &LocalUpstream, chat: ChatRequest) -> EventStream {
    local.stream(Arc::new(Request::chat("r", chat)))
}

#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) pieces: usize,
    pub(crate) usage: Option<Usage>,
    pub(crate) finish: Option<FinishReason>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) error: Option<Error>,
}

pub(crate) fn ask(local: &LocalUpstream, chat: ChatRequest) -> Answer {
    fold(block_on(open(local, chat).collect()))
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(future)
}

pub(crate) fn fold(events: Vec<Event>) -> Answer {
    let mut answer = Answer::default();
    for event in events {
        assert!(
            answer.finish.is_none() && answer.error.is_none(),
            "event after the terminal event"
        );
        match event {
            Event::BlockDelta {
                delta: Delta::Text { text },
                ..
            } => {
                answer.text.push_str(&text);
                answer.pieces += 1;
            }
            Event::Usage { usage } => answer.usage = Some(usage),
            Event::Finish { reason } => answer.finish = Some(reason),
            Event::Warning { warning } => answer.warnings.push(warning),
            Event::Error { error } => answer.error = Some(error),
            _ => {}
        }
    }
    answer
}
