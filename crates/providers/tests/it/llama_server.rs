//! Back-ends against a real server with a real, small model: two dialects, streams and unary responses,
//! schema enforcement, and consistent usage.

use ir::error::Phase;
use ir::{ChatRequest, ErrorKind, Event, ResponseFormat, Usage};
use providers::{ClientOptions, HttpOptions, HttpUpstream};
use serde_json::{Value, json};
use testkit::llama_server::Llama;

use crate::kinds::{KINDS, ask, chat, client, error_of, options, run, text};

/// The two dialects of the server, as kinds of back-end.
fn peers() -> [HttpUpstream; 2] {
    let llama = Llama::shared();
    let made = |(open, path): (crate::kinds::Open, &str)| {
        let options = HttpOptions {
            model: None,
            ..options(&llama.url(path))
        };
        open(client(&ClientOptions::default()), options)
    };
    [(KINDS[0].0, "/v1"), (KINDS[1].0, "")].map(made)
}

fn usage(events: &[Event]) -> Usage {
    let found = events.iter().rev().find_map(|event| match event {
        Event::Usage { usage } => Some(usage.clone()),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no usage in {events:?}"))
}

/// Calls with one retry, as a run does: this server occasionally closes pooled connections, and an error
/// before the first byte is retried.
async fn persist(peer: &HttpUpstream, chat: ChatRequest) -> Vec<Event> {
    let seen = ask(peer, chat.clone()).await;
    match text(&seen) {
        Err(error) if error.kind == ErrorKind::Network && error.phase == Phase::BeforeFirstByte => {
            ask(peer, chat).await
        }
        _ => seen,
    }
}

#[test]
fn real_model_responds_in_both_dialects_streamed_and_unary() {
    let peers = peers();
    run(async {
        for peer in &peers {
            let mut answers = Vec::new();
            for streams in [true, false] {
                let mut chat = chat();
                chat.generation.stream = Some(streams);
                chat.generation.temperature = serde_json::Number::from_f64(0.0);
                chat.generation.max_tokens = Some(24);
                let seen = persist(peer, chat).await;
                let answer = text(&seen).unwrap_or_else(|error| panic!("{error:?}: {seen:?}"));
                assert!(!answer.trim().is_empty(), "{seen:?}");
                let usage = usage(&seen);
                let written = usage.output_tokens.expect("the server counts");
                assert!((1..=24).contains(&written), "{usage:?}");
                assert!(usage.input_tokens.is_some_and(|read| read > 5), "{usage:?}");
                answers.push(answer);
            }
            assert_eq!(answers[0], answers[1], "the same request twice, deterministic");
        }
    });
}

#[test]
fn real_model_output_matches_schema() {
    let [openai, _] = peers();
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 20}, "sure": {"type": "boolean"}},
        "required": ["city", "sure"],
        "additionalProperties": false
    });
    run(async {
        let mut wanted = chat();
        wanted.generation.max_tokens = Some(80);
        wanted.response_format = Some(ResponseFormat::JsonSchema {
            name: Some(String::from("answer")),
            description: None,
            schema: schema.into(),
            strict: Some(true),
        });
        let seen = persist(&openai, wanted).await;
        let answer = text(&seen).expect("a whole answer");
        let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|why| panic!("{why}: {answer}"));
        assert!(
            answer["city"].is_string() && answer["sure"].is_boolean(),
            "{answer}"
        );
    });
}

#[test]
fn real_server_lists_sole_model_and_rejects_long_input() {
    let [openai, _] = peers();
    run(async {
        let models = openai.models().await.expect("a list");
        assert_eq!(models.len(), 1, "{models:?}");
        let mut long = chat();
        long.messages
            .push(ir::Message::text(ir::Role::User, "word ".repeat(6000)));
        let seen = persist(&openai, long).await;
        let error = error_of(&seen);
        assert_eq!(error.kind, ErrorKind::ContextWindow, "{error:?}");
    });
}
