//! The raw response, if requested: as received, with the key redacted.

use std::sync::Arc;

use engine::port::Upstream;
use futures::StreamExt;
use ir::{Dialect, Event, Request};
use providers::ClientOptions;
use serde_json::{Value, json};
use testkit::http::{MockServer, ScriptedResponse, scripted};

use crate::kinds::{KEY, KINDS, Open, chat, client, options, text};

const SCRIPT: &str = "- reply: \"It is Paris.\"\n  chunk_bytes: 4\n";

async fn said(open: Open, server: &MockServer, streams: bool, raw: bool) -> Vec<Event> {
    let back_end = open(client(&ClientOptions::default()), options(&server.url("")));
    let mut chat = chat();
    chat.generation.stream = Some(streams);
    let mut request = Request::chat("r", chat);
    if raw {
        request.extra.insert(String::from("raw"), json!(true));
    }
    back_end.stream(Arc::new(request)).collect().await
}

fn words(events: &[Event]) -> Vec<&Value> {
    let words = events.iter().filter_map(|event| match event {
        Event::Raw { data } => Some(data),
        _ => None,
    });
    words.collect()
}

#[tokio::test]
async fn unary_response_includes_raw_body() {
    for (open, dialect) in KINDS {
        let server = scripted(dialect, SCRIPT);
        let events = said(open, &server, false, true).await;
        assert_eq!(text(&events).unwrap(), "It is Paris.", "{dialect}");
        let words = words(&events);
        assert_eq!(words.len(), 1, "{dialect}: {events:?}");
        let place = match dialect {
            Dialect::OpenaiChat => "/choices/0/message/content",
            Dialect::Anthropic => "/content/0/text",
            Dialect::Gemini => "/candidates/0/content/parts/0/text",
            _ => "/message/content",
        };
        assert_eq!(words[0].pointer(place), Some(&json!("It is Paris.")), "{dialect}");
        let meant = said(open, &server, false, false).await;
        assert!(
            !meant.iter().any(|event| matches!(event, Event::Raw { .. })),
            "{dialect}"
        );
        let others: Vec<&Event> = events
            .iter()
            .filter(|event| !matches!(event, Event::Raw { .. }))
            .collect();
        assert_eq!(others, meant.iter().collect::<Vec<_>>(), "{dialect}");
    }
}

/// Not every server sends a unary response on request.
#[tokio::test]
async fn stream_includes_raw_data_in_order() {
    for (open, dialect) in KINDS {
        let server = scripted(dialect, SCRIPT);
        let events = said(open, &server, true, true).await;
        let words = words(&events);
        assert_eq!(words.len(), 1, "{dialect}");
        let data = words[0].as_array().unwrap();
        assert!(data.len() >= 3, "{dialect}: {data:?}");
        // The raw data is equivalent to the events.
        let frames: Vec<u8> = data
            .iter()
            .flat_map(|one| match dialect {
                Dialect::Ollama => format!("{one}\n").into_bytes(),
                _ => format!("data: {one}\n\n").into_bytes(),
            })
            .collect();
        let mut again = Vec::new();
        let mut decoder = wire::Decoder::new(dialect).unwrap();
        decoder.push(&frames, &mut again);
        decoder.finish(&mut again);
        assert_eq!(text(&again).unwrap(), "It is Paris.", "{dialect}");
        let place = |wanted: fn(&Event) -> bool| events.iter().position(wanted);
        let raw = place(|event| matches!(event, Event::Raw { .. }));
        let finish = place(|event| matches!(event, Event::Finish { .. }));
        assert!(
            raw.is_some() && raw < finish,
            "{dialect}: nothing is waited for behind an end"
        );
    }
}

#[tokio::test]
async fn quoted_key_is_redacted_from_raw_response() {
    let answer = json!({
        "id": KEY, "object": "chat.completion", "created": 1, "model": "small", KEY: 1,
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi."}}]
    });
    let server = MockServer::with_responses(ScriptedResponse::good("application/json", answer.to_string()));
    let events = said(providers::openai, &server, false, true).await;
    let words = words(&events);
    assert_eq!(words[0]["id"], "(key)");
    assert!(!words[0].to_string().contains(KEY));

    let vectors = json!({"object": "list", "model": KEY, "data": [{"index": 0, "embedding": [0.5]}]});
    let server = MockServer::with_responses(ScriptedResponse::good("application/json", vectors.to_string()));
    let back_end = providers::openai(client(&ClientOptions::default()), options(&server.url("")));
    let request = json!({"operation": "embeddings", "payload": {"input": "a"}, "extra": {"raw": true}});
    let request: Request = serde_json::from_value(request).unwrap();
    let answered = back_end.call(Arc::new(request)).await.unwrap();
    assert_eq!(answered.raw.unwrap()["model"], "(key)");
}
