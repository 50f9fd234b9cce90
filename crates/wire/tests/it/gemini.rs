//! Behaviour specific to Gemini.

use ir::{Component, Delta, Dialect, ErrorKind, Event, FinishReason, Ledger, Message, Role, ToolOutcome};
use proptest::prelude::*;
use serde_json::{Value, json};
use wire::{Decoder, Encoder, chat, error_body};

use crate::convert::{fixture, lost, request, request_into, response, response_into};
use crate::fixtures::disturbances;
use crate::fold::fold_bytes;
use crate::generators::{answer, information};
use crate::identity::disturbed;

const OWN: Dialect = Dialect::Gemini;

fn event(parts: &Value) -> Value {
    json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}], "modelVersion": "m", "responseId": "r"})
}

fn last(reason: &str) -> Value {
    json!({
        "candidates": [{"content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": reason}],
        "usageMetadata": {"promptTokenCount": 4, "candidatesTokenCount": 5, "thoughtsTokenCount": 6, "totalTokenCount": 15},
    })
}

fn sse(events: &[Value]) -> Vec<u8> {
    events
        .iter()
        .flat_map(|event| format!("data: {event}\r\n\r\n").into_bytes())
        .collect()
}

fn list(events: &[Value]) -> Vec<u8> {
    let events: Vec<String> = events.iter().map(|event| format!("{event:#}")).collect();
    format!("[{}\n]\n", events.join("\n,\r\n")).into_bytes()
}

#[test]
fn decodes_stream_as_sse_and_as_list() {
    let events = [
        event(&json!([{"text": "I ", "thought": true}])),
        event(&json!([{"text": "think.", "thought": true}])),
        event(&json!([{"text": "Look ] \\\" [: "}])),
        event(&json!([{"text": "two"}, {"text": " calls."}])),
        event(&json!([{"text": "", "thoughtSignature": "dGV4dA=="}])),
        event(&json!([{"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "Y2FsbA=="}])),
        event(&json!([{"functionCall": {"name": "f", "args": {"a": 2}}}, {"functionCall": {"name": "g"}}])),
        last("STOP"),
    ];
    let whole = fold_bytes(OWN, &sse(&events), 1000).unwrap();
    insta::assert_json_snapshot!("gemini_stream", whole);
    for size in [1, 2, 3, 7, 64] {
        assert_eq!(fold_bytes(OWN, &sse(&events), size).unwrap(), whole, "{size}");
        assert_eq!(fold_bytes(OWN, &list(&events), size).unwrap(), whole, "{size}");
    }
    // Such streams are often stored with one JSON object per line.
    let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
    assert_eq!(fold_bytes(OWN, lines.as_bytes(), 5).unwrap(), whole);
}

#[test]
fn merges_partial_arguments() {
    let piece = |path: &str, value: Value| {
        let mut piece = value;
        piece["jsonPath"] = json!(path);
        event(&json!([{"functionCall": {"partialArgs": [piece], "willContinue": true}}]))
    };
    let events = [
        event(&json!([{"functionCall": {"name": "f", "willContinue": true}, "thoughtSignature": "c2ln"}])),
        piece("$.a.b[0].c", json!({"stringValue": "Sa", "willContinue": true})),
        piece("$.a.b[0].c", json!({"stringValue": "n", "willContinue": true})),
        piece("$.a.b[0].c", json!({"stringValue": ""})),
        piece("$.a.b[1]", json!({"numberValue": 0.3})),
        piece("$['d e']", json!({"boolValue": true})),
        piece("$.n", json!({"nullValue": null})),
        event(&json!([{"functionCall": {}}])),
        event(&json!([{"functionCall": {"name": "g", "willContinue": true}}])),
        piece("$.x", json!({"stringValue": "y"})),
        // The end of the second call is omitted, as some servers do.
        last("STOP"),
    ];
    let whole = fold_bytes(OWN, &sse(&events), 11).unwrap();
    let calls: Vec<_> = whole.tool_calls().collect();
    assert_eq!(
        calls[0].arguments,
        Some(json!({"a": {"b": [{"c": "San"}, 0.3]}, "d e": true, "n": null}))
    );
    assert_eq!(calls[1].arguments, Some(json!({"x": "y"})));
    assert_ne!(calls[0].id, calls[1].id);
    assert_eq!(whole.parts[0].ext.note(OWN, "thoughtSignature"), Some("c2ln"));
    assert_eq!(whole.finish_reason, Some(FinishReason::ToolCalls));
    for lost in ["$.a[100000]", "a", "$..", "$[x"] {
        let begun = event(&json!([{"functionCall": {"name": "f", "willContinue": true}}]));
        let events = [begun, piece(lost, json!({"numberValue": 1})), last("STOP")];
        let folded = fold_bytes(OWN, &sse(&events), 100);
        assert!(folded.is_err() || lost == "$..", "{lost}");
    }
}

/// The signatures of a response are sent with the next request at their original position.
#[test]
fn signatures_roundtrip_across_turns() {
    let answer = response(OWN, "full");
    let mut chat = ir::ChatRequest::new("m", vec![Message::text(Role::User, "Hello")]);
    chat.messages.push(Message::new(Role::Assistant, answer.parts));
    let again = request_into(OWN, &chat);
    let parts = &again["body"]["contents"][1]["parts"];
    let signed = |at: usize| parts[at]["thoughtSignature"].as_str().unwrap_or_default();
    assert_eq!(
        [signed(0), signed(1), signed(3)],
        ["c2ln", "dGV4dA==", "Y2FsbA=="],
        "{parts:#}"
    );
    // In other dialects they are recorded as losses.
    let elsewhere = request_into(Dialect::OpenaiChat, &chat);
    assert!(lost(
        &elsewhere,
        "/payload/messages/1/content_parts/3/ext/gemini/thoughtSignature"
    ));
    assert!(lost(&elsewhere, "/payload/messages/1/content_parts/0"));
}

#[test]
fn snake_case_and_camel_case_are_equivalent() {
    let snake = request(OWN, "snake");
    assert_eq!(snake.generation.max_tokens, Some(10));
    assert_eq!(snake.reasoning.as_ref().unwrap().enabled, Some(false));
    assert_eq!(snake.tool_choice, Some(ir::ToolChoice::Auto));
    assert_eq!(snake.messages[0].role, Role::System);
    // Field names of the caller's data are unchanged.
    let call = snake.messages[2].tool_calls().next().unwrap();
    assert_eq!(call.arguments, Some(json!({"top_k": 1})));
    let ir::PartBody::ToolResult(result) = &snake.messages[3].parts[0].body else {
        panic!("a result");
    };
    assert_eq!(result.joined_text(), "{\"mime_type\":\"x\"}");
    assert_eq!(result.call_id, call.id);
}

#[test]
fn decodes_tool_result_outcomes() {
    let full = request(OWN, "full");
    let outcomes: Vec<_> = full
        .messages
        .iter()
        .flat_map(|message| &message.parts)
        .filter_map(|part| match &part.body {
            ir::PartBody::ToolResult(result) => Some((result.outcome, result.joined_text())),
            _ => None,
        })
        .collect();
    assert_eq!(outcomes[0], (ToolOutcome::Success, String::from("sunny")));
    assert_eq!(outcomes[2], (ToolOutcome::Error, String::from("no such city")));
}

#[test]
fn error_in_response_body_is_an_error() {
    let body = json!({"error": {
        "code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}],
    }});
    let error = chat::decode_response(OWN, body.clone()).unwrap_err();
    assert_eq!(
        (error.kind, error.status, error.retry_after_ms),
        (ErrorKind::RateLimited, Some(429), Some(34_500))
    );
    let again = chat::encode_error(OWN, &error);
    assert_eq!(
        chat::decode_response(OWN, again).unwrap_err().retry_after_ms,
        Some(34_500)
    );
    let listed = error_body::decode(OWN, 429, None, json!([body]).to_string().as_bytes());
    assert_eq!(listed.kind, ErrorKind::RateLimited);
    let blocked =
        json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4}});
    let error = chat::decode_response(OWN, blocked.clone()).unwrap_err();
    assert_eq!(
        (error.kind, error.provider_code.as_deref()),
        (ErrorKind::ContentPolicy, Some("SAFETY"))
    );
    assert_eq!(
        fold_bytes(OWN, &sse(&[blocked]), 9).unwrap_err().kind,
        ErrorKind::ContentPolicy
    );
    assert!(chat::decode_response(OWN, json!({"candidates": []})).is_err());
    for bytes in [
        sse(&[event(&json!([{"text": "he"}])), body.clone()]),
        list(&[event(&json!([{"text": "he"}])), body]),
    ] {
        assert_eq!(
            fold_bytes(OWN, &bytes, 10).unwrap_err().kind,
            ErrorKind::RateLimited
        );
    }
}

#[test]
fn maps_finish_reasons() {
    for (word, reason) in [
        ("STOP", FinishReason::Stop),
        ("MAX_TOKENS", FinishReason::Length),
        ("SAFETY", FinishReason::ContentFilter),
        ("PROHIBITED_CONTENT", FinishReason::ContentFilter),
        (
            "MALFORMED_FUNCTION_CALL",
            FinishReason::Other(String::from("MALFORMED_FUNCTION_CALL")),
        ),
    ] {
        let body = json!({"candidates": [{"content": {"parts": [{"text": "x"}], "role": "model"}, "finishReason": word, "index": 0}]});
        let whole = chat::decode_response(OWN, body.clone()).unwrap();
        assert_eq!(whole.finish_reason, Some(reason.clone()), "{word}");
        assert_eq!(response_into(OWN, &whole)["body"], body, "{word}");
        let folded = fold_bytes(OWN, &sse(&[event(&json!([{"text": "x"}])), last(word)]), 10).unwrap();
        assert_eq!(folded.finish_reason, Some(reason), "{word}");
    }
}

#[test]
fn absent_counts_are_none() {
    let whole = response(OWN, "full").usage.unwrap();
    assert_eq!(
        (
            whole.input_tokens,
            whole.output_tokens,
            whole.cache_read_tokens,
            whole.reasoning_tokens,
            whole.input_audio_tokens
        ),
        (Some(22), Some(18), Some(5), Some(11), Some(5))
    );
    let thinking = response(OWN, "filter").usage.unwrap();
    assert_eq!(
        (thinking.output_tokens, thinking.cache_read_tokens),
        (Some(3), None)
    );
    let mut body = fixture(OWN, "filter", ".response.json");
    body["usageMetadata"] = json!({"trafficType": "ON_DEMAND"});
    let untold = chat::decode_response(OWN, body).unwrap().usage.unwrap();
    assert_eq!((untold.input_tokens, untold.output_tokens), (None, None));
}

/// A call is buffered until complete, also when the deltas of two calls alternate.
#[test]
fn interleaved_calls_are_encoded_whole() {
    let start = |index: u32, name: &str| Event::BlockStart {
        index,
        block: ir::Block::ToolCall {
            id: format!("id{index}"),
            name: String::from(name),
        },
    };
    let grow = |index: u32, json: &str| Event::BlockDelta {
        index,
        delta: Delta::ToolArguments {
            json: String::from(json),
        },
    };
    let events = [
        start(0, "f"),
        grow(0, "{\"a\":"),
        Event::BlockEnd { index: 0 },
        start(1, "g"),
        grow(1, "{\"b\""),
        grow(0, "1}"),
        grow(1, ":2}"),
        Event::Finish {
            reason: FinishReason::ToolCalls,
        },
    ];
    for dialect in [OWN, Dialect::Ollama] {
        let bytes = crate::fold::stream_of(dialect, &events);
        let whole = fold_bytes(dialect, &bytes, 13).unwrap();
        let calls: Vec<_> = whole
            .tool_calls()
            .map(|call| call.arguments.clone().unwrap())
            .collect();
        assert_eq!(calls, [json!({"a": 1}), json!({"b": 2})], "{dialect}");
        assert_eq!(whole.finish_reason, Some(FinishReason::ToolCalls), "{dialect}");
    }
}

proptest! {
    #![proptest_config(crate::fixtures::cases(256))]

    #[test]
    fn mutated_gemini_documents_roundtrip(changes in disturbances(), pick: prop::sample::Index) {
        disturbed(OWN, &changes, &pick)?;
    }

    /// A stream encoded as a list is equivalent to the unary response.
    #[test]
    fn list_stream_folds_to_response(response in answer(OWN), size in 1_usize..64) {
        let mut ledger = Ledger::new(Component::Adapter);
        let whole = chat::encode_response(OWN, &response, &mut ledger).unwrap();
        let whole = chat::decode_response(OWN, whole).unwrap();
        let mut encoder = Encoder::gemini_list();
        let mut bytes = Vec::new();
        for event in ir::fold::unfold(&response) {
            encoder.push(&event, &mut bytes, &mut ledger);
        }
        encoder.finish(&mut bytes);
        prop_assert!(serde_json::from_slice::<Vec<Value>>(&bytes).is_ok());
        prop_assert_eq!(information(fold_bytes(OWN, &bytes, size).unwrap()), information(whole));
    }
}

/// Any bytes, bare and inside the frames of the dialect, split into pieces of any size.
#[test]
fn stream_decoder_accepts_arbitrary_bytes() {
    bolero::check!().with_iterations(1500).for_each(|bytes: &[u8]| {
        let call = [
            b"{\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{".as_slice(),
            bytes,
            b"}}]}}]}",
        ]
        .concat();
        let text = [
            b"{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"".as_slice(),
            bytes,
            b"\"}]}}]}",
        ]
        .concat();
        for inner in [bytes, &call, &text] {
            for framed in [
                inner.to_vec(),
                [b"data: ".as_slice(), inner, b"\n\n"].concat(),
                [b"[".as_slice(), inner, b",\n", inner, b"]"].concat(),
            ] {
                let mut decoder = Decoder::new(OWN).unwrap();
                let mut events = Vec::new();
                framed
                    .chunks(7)
                    .for_each(|piece| decoder.push(piece, &mut events));
                decoder.finish(&mut events);
            }
        }
    });
}
