//! The kinds of HTTP back-ends, and helpers for all of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use engine::port::Upstream;
use futures::StreamExt;
use ir::fold::Fold;
use ir::{ChatRequest, Dialect, Event, Feature, Generation, Message, Request, Role};
use providers::{Client, ClientOptions, HttpOptions, HttpUpstream, Timeouts};
use secrecy::SecretString;

pub(crate) const KEY: &str = "sk-very-secret";

/// Creates a back-end of a kind.
pub(crate) type Open = fn(Client, HttpOptions) -> HttpUpstream;

pub(crate) const KINDS: [(Open, Dialect); 4] = [
    (providers::openai, Dialect::OpenaiChat),
    (providers::anthropic, Dialect::Anthropic),
    (providers::gemini, Dialect::Gemini),
    (providers::ollama, Dialect::Ollama),
];

/// Timeouts that are not reached even on a busy machine.
pub(crate) const PATIENT: Timeouts = Timeouts {
    first_byte: Duration::from_secs(60),
    idle: Duration::from_secs(60),
    total: Duration::from_secs(120),
};

pub(crate) fn client(options: &ClientOptions) -> Client {
    Client::new(options).expect("a client")
}

pub(crate) fn options(base_url: &str) -> HttpOptions {
    HttpOptions {
        name: String::from("tested"),
        base_url: String::from(base_url),
        model: Some(String::from("small")),
        key: Some(SecretString::from(KEY)),
        features: Feature::all().into_iter().collect::<BTreeSet<_>>(),
        timeouts: PATIENT,
        ..HttpOptions::default()
    }
}

pub(crate) fn chat() -> ChatRequest {
    ChatRequest {
        messages: vec![
            Message::text(Role::System, "Answer in one sentence."),
            Message::text(Role::User, "What is the capital of France?"),
        ],
        generation: Generation {
            stream: Some(true),
            max_tokens: Some(64),
            ..Generation::default()
        },
        ..ChatRequest::default()
    }
}

pub(crate) async fn ask(back_end: &HttpUpstream, chat: ChatRequest) -> Vec<Event> {
    back_end
        .stream(Arc::new(Request::chat("req-1", chat)))
        .collect()
        .await
}

/// The one error of a call: it is the last event, and the only error.
pub(crate) fn error_of(events: &[Event]) -> &ir::Error {
    let errors = events.iter().filter(|event| matches!(event, Event::Error { .. }));
    assert_eq!(errors.count(), 1, "{events:?}");
    match events.last() {
        Some(Event::Error { error }) => error,
        _ => panic!("{events:?}"),
    }
}

pub(crate) fn text(events: &[Event]) -> Result<String, ir::Error> {
    let mut fold = Fold::new();
    events.iter().cloned().for_each(|event| fold.push(event));
    fold.finish().map(|response| response.text())
}

pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(test)
}
