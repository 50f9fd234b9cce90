//! Regression tests for defects known from other gateways.

use ir::{ChatRequest, Component, Dialect, ErrorKind, Generation, Ledger, Message, Role};
use serde_json::json;
use wire::{chat, error_body};

fn encode(dialect: Dialect, chat: &ChatRequest) -> serde_json::Value {
    chat::encode_request(dialect, chat, &mut Ledger::new(Component::Adapter)).unwrap()
}

/// An HTML page of a proxy is not a response; its status determines the error.
#[test]
fn html_error_page_keeps_status() {
    let page = b"<html><body><h1>502 Bad Gateway</h1></body></html>";
    for dialect in chat::DIALECTS {
        let error = error_body::decode(*dialect, 502, Some("7"), page);
        assert_eq!(error.kind, ErrorKind::Upstream);
        assert_eq!(error.status, Some(502));
        assert_eq!(error.retry_after_ms, Some(7000));
        assert!(error.message.contains("502 Bad Gateway"), "{}", error.message);
        assert!(error.retryable());
    }
}

/// A long body of multi-byte characters is quoted without splitting one.
#[test]
fn quote_never_splits_a_character() {
    for extra in 0..4 {
        let body = format!("{}{}", "x".repeat(extra), "语".repeat(2000));
        let error = error_body::decode(Dialect::OpenaiChat, 500, None, body.as_bytes());
        assert!(error.message.contains('语'));
    }
}

/// Code and details of an error are encoded in every dialect and decoded again.
#[test]
fn error_kind_roundtrips_in_every_dialect() {
    for kind in [
        ErrorKind::RateLimited,
        ErrorKind::InvalidRequest,
        ErrorKind::Auth,
        ErrorKind::Upstream,
    ] {
        let error = ir::Error::new(kind, ir::Phase::BeforeFirstByte, "why it went wrong");
        let status = error_body::status_of(&error);
        for dialect in chat::DIALECTS {
            let body = chat::encode_error(*dialect, &error).to_string();
            let read = error_body::decode(*dialect, status, None, body.as_bytes());
            assert_eq!(
                (read.kind, read.message.as_str()),
                (kind, "why it went wrong"),
                "{dialect}"
            );
            assert_eq!(read.retryable(), error.retryable(), "{dialect}");
        }
    }
}

/// An error body with HTTP status 200 is an error.
#[test]
fn an_error_with_status_200_is_an_error() {
    for (dialect, body) in [
        (
            Dialect::OpenaiChat,
            json!({"error": {"message": "overloaded", "code": 529}}),
        ),
        (
            Dialect::OpenaiChat,
            json!({"error": {"message": "m", "code": 429}, "choices": []}),
        ),
        (
            Dialect::OpenaiResponses,
            json!({"id": "r", "status": "failed", "error": {"code": "server_error", "message": "m"}, "output": []}),
        ),
        (
            Dialect::Anthropic,
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}),
        ),
        (
            Dialect::Gemini,
            json!({"error": {"code": 503, "message": "m", "status": "UNAVAILABLE"}}),
        ),
        (
            Dialect::Gemini,
            json!([{"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED"}}]),
        ),
        (Dialect::Ollama, json!({"error": "model not found"})),
    ] {
        let error = chat::decode_response(dialect, body).unwrap_err();
        assert_ne!(error.kind, ErrorKind::InvalidResponse, "{dialect}: {error:?}");
    }
}

/// Absent counts are unknown, not zero, and not the number of messages.
#[test]
fn absent_usage_is_none() {
    for (dialect, body) in [
        (
            Dialect::OpenaiChat,
            json!({"choices": [{"message": {"content": "x"}}]}),
        ),
        (Dialect::OpenaiResponses, json!({"output": []})),
        (Dialect::Anthropic, json!({"content": []})),
        (
            Dialect::Gemini,
            json!({"candidates": [{"content": {"parts": []}}]}),
        ),
        (
            Dialect::Ollama,
            json!({"message": {"content": "x"}, "done": true}),
        ),
    ] {
        let response = chat::decode_response(dialect, body).unwrap();
        assert_eq!(
            response.usage.and_then(|usage| usage.total_tokens()),
            None,
            "{dialect}"
        );
    }
}

/// Generation parameters are in `options` under Ollama's names.
#[test]
fn ollama_options_use_native_names() {
    let mut request = ChatRequest::new("m", vec![Message::text(Role::User, "hi")]);
    request.generation = Generation {
        max_tokens: Some(5),
        stop: vec![String::from("END")],
        temperature: Some(0.into()),
        ..Generation::default()
    };
    let body = encode(Dialect::Ollama, &request);
    assert_eq!(
        body["options"],
        json!({"temperature": 0, "num_predict": 5, "stop": ["END"]})
    );
    assert_eq!(body["stream"], false);
}

/// The decoded response format is the same in every dialect.
#[test]
fn decodes_response_schema_in_every_dialect() {
    for (dialect, body) in [
        (
            Dialect::OpenaiChat,
            json!({"messages": [], "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}}),
        ),
        (
            Dialect::OpenaiResponses,
            json!({"input": [], "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}}}),
        ),
        (
            Dialect::Anthropic,
            json!({"messages": [], "output_config": {"format": {"type": "json_schema", "schema": {}}}}),
        ),
        (
            Dialect::Gemini,
            json!({"contents": [], "generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": {}}}),
        ),
        (
            Dialect::Ollama,
            json!({"messages": [], "format": {"type": "object"}}),
        ),
    ] {
        let request = wire::document::decode_request(dialect, body).unwrap();
        assert!(
            request
                .needs()
                .required_features
                .contains(&ir::Feature::JsonSchema),
            "{dialect}"
        );
    }
}

/// Reasoning is sent only to its original dialect, and never as text.
#[test]
fn reasoning_is_sent_only_to_its_original_dialect() {
    let body = json!({"model": "m", "max_tokens": 1, "messages": [
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "secret plan", "signature": "s"}, {"type": "text", "text": "hi"}]}
    ]});
    let request = chat::decode_request(Dialect::Anthropic, body.clone()).unwrap();
    assert_eq!(encode(Dialect::Anthropic, &request), body);
    for dialect in chat::DIALECTS
        .iter()
        .filter(|dialect| **dialect != Dialect::Anthropic)
    {
        let mut ledger = Ledger::new(Component::Adapter);
        let target = chat::encode_request(*dialect, &request, &mut ledger).unwrap();
        assert!(!target.to_string().contains("secret plan"), "{dialect}");
        assert!(
            ledger
                .losses()
                .any(|loss| loss.reason.contains("original dialect")),
            "{dialect}"
        );
    }
}

/// An entry of `images` that is no picture was dropped when the response was encoded again.
#[test]
fn images_that_are_no_pictures_are_kept() {
    let body = json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "a", "images": [{"type": null}]}, "finish_reason": "stop"}
    ]});
    let response = chat::decode_response(Dialect::OpenaiChat, body.clone()).unwrap();
    let mut ledger = Ledger::new(Component::Adapter);
    let again = chat::encode_response(Dialect::OpenaiChat, &response, &mut ledger).unwrap();
    assert_eq!(again, body);
}
