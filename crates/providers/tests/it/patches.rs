//! Request patches of the body, over real sockets in every dialect: non-structural fields are changed,
//! structural fields are protected, and other back-ends are not affected.

use std::sync::Arc;

use engine::port::Upstream;
use futures::StreamExt;
use ir::media::MediaHandle;
use ir::{ChatRequest, Dialect, Event, Media, MediaSource, Message, Part, Request, ResponseFormat, Role};
use providers::ClientOptions;
use serde_json::{Value, json};
use testkit::http::{MockServer, ReceivedRequest, ScriptedResponse};

use crate::kinds::{KEY, KINDS, Open, chat, client, error_of, options};

/// A server that rejects every request and records it.
fn rejecting_server() -> MockServer {
    MockServer::with_responses(ScriptedResponse::response("503 Service Unavailable", &[], "{}"))
}

async fn opened(open: Open, request: Request) -> (Vec<Event>, Vec<ReceivedRequest>) {
    let server = rejecting_server();
    let back_end = open(client(&ClientOptions::default()), options(&server.url("")));
    let events = back_end.stream(Arc::new(request)).collect().await;
    (events, server.received())
}

fn patched(chat: ChatRequest, patches: Value) -> Request {
    let mut request = Request::chat("r", chat);
    request.patches = serde_json::from_value(patches).unwrap();
    request
}

fn refused(events: &[Event]) -> Vec<&str> {
    let refused = events.iter().filter_map(|event| match event {
        Event::Warning { warning } if warning.message.starts_with("/patches/") => {
            warning.message.split(": ").next()
        }
        _ => None,
    });
    refused.collect()
}

#[tokio::test]
async fn patches_apply_in_every_dialect() {
    for (open, dialect) in KINDS {
        let (_, plain) = opened(open, Request::chat("r", chat())).await;
        let (setting, limit) = match dialect {
            Dialect::OpenaiChat => ("/top_k", "/max_completion_tokens"),
            Dialect::Gemini => (
                "/generationConfig/enhancedCivicAnswers",
                "/generationConfig/maxOutputTokens",
            ),
            Dialect::Ollama => ("/options/mirostat", "/options/num_predict"),
            _ => ("/context_management", "/max_tokens"),
        };
        let patches = json!([
            {"pointer": setting, "value": 7},
            {"pointer": limit, "delete": true},
            {"match": {"kind": "other"}, "pointer": "/top_k", "value": 8},
            {"match": {"backend": "elsewhere"}, "pointer": "/top_k", "value": 9},
            {"match": {"model": "large"}, "pointer": "/top_k", "value": 10},
            {"match": {"backend": "tested", "model": "small"}, "pointer": "/own", "value": {"a": [null]}},
            {"pointer": "/messages", "value": []},
            {"pointer": "/contents/0", "delete": true},
        ]);
        let (events, asked) = opened(open, patched(chat(), patches)).await;
        let mut expected = plain[0].json();
        assert!(expected.pointer(limit).is_some(), "{dialect}: {expected}");
        let (parent, key) = limit.rsplit_once('/').unwrap();
        let parent = expected.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        parent.shift_remove(key);
        let (parent, key) = setting.rsplit_once('/').unwrap();
        expected.pointer_mut(parent).unwrap()[key] = json!(7);
        expected["own"] = json!({"a": [null]});
        assert_eq!(asked[0].json(), expected, "{dialect}");
        assert_eq!(refused(&events), ["/patches/6", "/patches/7"], "{dialect}");
        // URL and headers cannot be patched.
        assert_eq!(asked[0].path(), plain[0].path());
        let key = |asked: &ReceivedRequest| asked.head.contains(KEY);
        assert!(key(&asked[0]) && key(&plain[0]));
        assert!(!asked[0].text().contains(KEY));
    }
}

#[tokio::test]
async fn strict_request_with_refused_patch_is_not_sent() {
    for (open, dialect) in KINDS {
        let mut request = patched(chat(), json!([{"pointer": "/model", "value": "dear"}]));
        request.degradation = Some(ir::Degradation::Strict);
        let (events, asked) = opened(open, request).await;
        let error = error_of(&events);
        assert_eq!(error.kind, ir::ErrorKind::Unsupported, "{dialect}");
        assert!(error.message.starts_with("/patches/0: "), "{}", error.message);
        assert!(asked.is_empty(), "{dialect}");
    }
}

/// Bodies other than plain text: media that is streamed, and a schema.
#[tokio::test]
async fn patches_apply_to_bodies_with_placeholders_and_schemas() {
    let bytes: Vec<u8> = (0..300_000_u32).map(|n| n.to_be_bytes()[3]).collect();
    let make = |held: bool| {
        let source = match held {
            true => {
                let held = MediaHandle::from_bytes(bytes.clone()).unwrap();
                MediaSource::Handle(held)
            }
            false => MediaSource::Inline(ir::media::Base64::from_bytes(&bytes)),
        };
        let mut message = Message::text(Role::User, "What is it?");
        let picture = Media::new(source, Some(String::from("image/png")));
        message.parts.push(Part::from(picture));
        ChatRequest {
            response_format: Some(ResponseFormat::JsonSchema {
                name: None,
                description: None,
                schema: json!({"type": "object", "properties": {"a": {"type": "string"}}}).into(),
                strict: Some(true),
            }),
            ..ChatRequest::new("small", vec![message])
        }
    };
    let patches = json!([
        {"pointer": "/response_format/json_schema", "value": {}},
        {"pointer": "/response_format", "delete": true},
        {"pointer": "/format", "delete": true},
        {"pointer": "/generationConfig", "delete": true},
        {"pointer": "/output_config", "value": {}},
        {"pointer": "/own", "value": "x".repeat(2000)},
    ]);
    for (open, dialect) in KINDS {
        let (_, plain) = opened(open, Request::chat("r", make(false))).await;
        let (events, asked) = opened(open, patched(make(true), patches.clone())).await;
        let mut expected = plain[0].json();
        expected["own"] = json!("x".repeat(2000));
        assert!(asked[0].json() == expected, "{dialect}");
        let length = asked[0].header("content-length").unwrap();
        assert_eq!(length, asked[0].body.len().to_string(), "{dialect}");
        assert_eq!(refused(&events).len(), 5, "{dialect}");
    }
}

#[tokio::test]
async fn patches_apply_to_unary_operations_as_json_and_multipart() {
    let sound = json!({"kind": "inline_base64", "mime": "audio/wav", "data": "UklGRiQAAABXQVZFZm10IA=="});
    let cases = [
        ("embeddings", json!({"input": "a"})),
        ("image_generation", json!({"prompt": "a fox", "n": 1})),
        ("text_to_speech", json!({"input": "a", "voice": "b"})),
        ("speech_to_text", json!({"audio": sound, "prompt": "c"})),
    ];
    for (operation, payload) in cases {
        let form = operation == "speech_to_text";
        let server = rejecting_server();
        let back_end = providers::openai(client(&ClientOptions::default()), options(&server.url("")));
        let ask = async |patches: Value, strict: bool| {
            let mut value = json!({"operation": operation, "payload": payload, "patches": patches});
            if strict {
                value["degradation"] = json!("strict");
            }
            let request: Request = serde_json::from_value(value).unwrap();
            back_end.call(Arc::new(request)).await.unwrap_err()
        };
        let patches = json!([
            {"match": {"kind": "openai", "model": "small"}, "pointer": "/own", "value": 7},
            {"match": {"kind": "gemini"}, "pointer": "/other", "value": 7},
            {"pointer": "/Model", "value": "dear"},
            {"pointer": "/file[]", "value": "x"},
            {"pointer": "/n", "value": 100},
        ]);
        ask(json!([]), false).await;
        ask(patches.clone(), false).await;
        let error = ask(patches, true).await;
        assert!(error.message.starts_with("/patches/2: "), "{}", error.message);
        let asked = server.received();
        assert_eq!(asked.len(), 2, "{operation}: a rejected request is not sent");
        if form {
            let text = asked[1].text();
            assert!(text.contains("name=\"own\"\r\n\r\n7\r\n"), "{text}");
            assert_eq!(
                text.matches("name=\"").count(),
                asked[0].text().matches("name=\"").count() + 1
            );
            assert!(text.contains("name=\"model\"\r\n\r\nsmall\r\n"), "{text}");
        } else {
            let mut expected = asked[0].json();
            expected["own"] = json!(7);
            assert_eq!(asked[1].json(), expected, "{operation}");
        }
    }
}

/// A unary response reports the patches that were refused.
#[tokio::test]
async fn unary_response_reports_refused_patches() {
    let answer = json!({"object": "list", "model": "small", "data": [{"index": 0, "embedding": [0.5]}]});
    let server = MockServer::with_responses(ScriptedResponse::good("application/json", answer.to_string()));
    let back_end = providers::openai(client(&ClientOptions::default()), options(&server.url("")));
    let patches = json!([{"pointer": "/user", "value": "x"}, {"pointer": "/truncate", "value": true}]);
    let request = json!({"operation": "embeddings", "payload": {"input": "a"}, "patches": patches});
    let request: Request = serde_json::from_value(request).unwrap();
    let answered = back_end.call(Arc::new(request)).await.unwrap();
    let places: Vec<&str> = answered
        .adaptations
        .iter()
        .map(|one| one.pointer.as_str())
        .collect();
    assert_eq!(places, ["/patches/0"]);
    assert_eq!(server.received()[0].json()["truncate"], true);
}
