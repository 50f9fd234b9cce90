//! Behaviour specific to Ollama.

use ir::{Dialect, ErrorKind, FinishReason, ReasoningRequest};
use proptest::prelude::*;
use serde_json::{Value, json};
use wire::{Decoder, chat, error_body};

use crate::convert::{lost, request, request_into, response};
use crate::fixtures::disturbances;
use crate::fold::fold_bytes;
use crate::identity::disturbed;

const OWN: Dialect = Dialect::Ollama;

/// Ollama silently ignores unknown options, so each must have its native name.
#[test]
fn options_use_native_names_or_are_recorded_as_losses() {
    let asked = json!({
        "model": "m",
        "messages": [{"role": "user", "content": "Hello"}],
        "temperature": 0.5, "top_p": 0.9, "max_tokens": 7, "stop": "END", "seed": 1,
        "presence_penalty": 0.1, "frequency_penalty": 0.2, "n": 2, "logit_bias": {"1": 2},
        "logprobs": true, "top_logprobs": 2, "user": "u", "tool_choice": "required",
        "parallel_tool_calls": false, "reasoning_effort": "minimal", "service_tier": "flex",
    });
    let asked = chat::decode_request(Dialect::OpenaiChat, asked).unwrap();
    let converted = request_into(OWN, &asked);
    assert_eq!(
        converted["body"],
        json!({
            "model": "m",
            "messages": [{"role": "user", "content": "Hello"}],
            "options": {
                "temperature": 0.5, "top_p": 0.9, "num_predict": 7, "stop": ["END"], "seed": 1,
                "presence_penalty": 0.1, "frequency_penalty": 0.2,
            },
            "logprobs": true, "top_logprobs": 2, "think": "low", "stream": false,
        })
    );
    for pointer in [
        "/payload/generation/n",
        "/payload/user",
        "/payload/tool_choice",
        "/payload/parallel_tool_calls",
        "/payload/reasoning/effort",
        "/payload/ext/openai-chat/logit_bias",
        "/payload/ext/openai-chat/service_tier",
    ] {
        assert!(lost(&converted, pointer), "{pointer}: {converted:#}");
    }
}

/// An absent flag means a stream in Ollama and a unary response in all other dialects.
#[test]
fn absent_stream_flag_keeps_its_meaning() {
    let short = request(OWN, "short");
    assert!(short.streams());
    assert_eq!(request_into(Dialect::OpenaiChat, &short)["body"]["stream"], true);
    assert_eq!(request_into(OWN, &short)["body"].get("stream"), None);
    let body = json!({"model": "m", "messages": []});
    let asked = chat::decode_request(Dialect::OpenaiChat, body).unwrap();
    assert_eq!(request_into(OWN, &asked)["body"]["stream"], false);
}

#[test]
fn thinking_is_on_off_or_a_level() {
    let mut asked = request(OWN, "short");
    let mut think = |reasoning: ReasoningRequest| {
        asked.reasoning = Some(reasoning);
        request_into(OWN, &asked)["body"]["think"].clone()
    };
    let effort = |word: &str| ReasoningRequest {
        effort: Some(String::from(word)),
        ..ReasoningRequest::default()
    };
    assert_eq!(think(effort("medium")), "medium");
    assert_eq!(think(effort("xhigh")), "high");
    assert_eq!(think(effort("none")), false);
    let budget = ReasoningRequest {
        enabled: Some(true),
        budget_tokens: Some(5),
        ..ReasoningRequest::default()
    };
    assert_eq!(think(budget), true);
}

/// Results without ids belong to the calls in order, or to the call with the same name.
#[test]
fn matches_results_to_calls() {
    let full = request(OWN, "full");
    let calls: Vec<String> = full.messages[2]
        .tool_calls()
        .map(|call| call.id.clone())
        .collect();
    let results: Vec<String> = full
        .messages
        .iter()
        .flat_map(|message| &message.parts)
        .filter_map(|part| match &part.body {
            ir::PartBody::ToolResult(result) => Some(result.call_id.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(results[..3], calls);
    assert_eq!(results[3], "unknown");
}

fn line(message: &Value) -> Value {
    json!({"model": "m", "created_at": "2026-05-04T20:01:02.5Z", "message": message, "done": false})
}

fn last(reason: &str) -> Value {
    json!({
        "model": "m", "created_at": "2026-05-04T20:01:09.5Z",
        "message": {"role": "assistant", "content": ""},
        "done": true, "done_reason": reason,
        "total_duration": 9, "prompt_eval_count": 4, "eval_count": 5,
    })
}

fn lines(lines: &[Value]) -> Vec<u8> {
    lines
        .iter()
        .flat_map(|line| format!("{line}\n").into_bytes())
        .collect()
}

#[test]
fn decodes_stream() {
    let stream = [
        line(&json!({"role": "assistant", "content": "", "thinking": "Hm"})),
        line(&json!({"role": "assistant", "content": "", "thinking": "m."})),
        line(&json!({"role": "assistant", "content": "Two "})),
        line(&json!({"role": "assistant", "content": "calls."})),
        line(&json!({"role": "assistant", "content": "", "tool_calls": [
            {"function": {"index": 0, "name": "f", "arguments": {"a": 1}}},
            {"id": "x", "function": {"index": 1, "name": "f", "arguments": {}}},
        ]})),
        line(&json!({"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "g"}}]})),
        last("stop"),
    ];
    let bytes = lines(&stream);
    let whole = fold_bytes(OWN, &bytes, 1000).unwrap();
    insta::assert_json_snapshot!("ollama_stream", whole);
    for size in [1, 2, 3, 7, 64] {
        assert_eq!(fold_bytes(OWN, &bytes, size).unwrap(), whole, "{size}");
    }
    // Without the last line the response is incomplete.
    let cut = lines(&stream[..stream.len() - 1]);
    assert_eq!(fold_bytes(OWN, &cut, 50).unwrap_err().kind, ErrorKind::Network);
}

#[test]
fn error_in_response_body_is_an_error() {
    let body = json!({"error": "model 'x' not found"});
    let error = chat::decode_response(OWN, body.clone()).unwrap_err();
    assert_eq!(error.message, "model 'x' not found");
    let error = error_body::decode(OWN, 404, None, body.to_string().as_bytes());
    assert_eq!((error.kind, error.status), (ErrorKind::NotEnabled, Some(404)));
    let bytes = lines(&[line(&json!({"role": "assistant", "content": "he"})), body]);
    assert_eq!(
        fold_bytes(OWN, &bytes, 9).unwrap_err().message,
        "model 'x' not found"
    );
    let mut error = ir::Error::new(ErrorKind::Auth, ir::Phase::BeforeSend, "no key");
    error.status = Some(401);
    let again = chat::decode_response(OWN, chat::encode_error(OWN, &error)).unwrap_err();
    assert_eq!((again.kind, again.message.as_str()), (ErrorKind::Auth, "no key"));
}

/// Calls beyond the limit are an error; none is dropped silently.
#[test]
fn too_many_calls_are_an_error() {
    let call = json!({"function": {"name": "f", "arguments": {}}});
    let calls = vec![call; wire::limits::TOOL_CALLS_MAX + 1];
    let bytes = lines(&[
        line(&json!({"role": "assistant", "tool_calls": calls})),
        last("stop"),
    ]);
    let error = fold_bytes(OWN, &bytes, 1000).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidResponse);
}

#[test]
fn maps_finish_reasons() {
    for (word, reason) in [
        ("stop", FinishReason::Stop),
        ("length", FinishReason::Length),
        ("load", FinishReason::Other(String::from("load"))),
    ] {
        let bytes = lines(&[line(&json!({"role": "assistant", "content": "x"})), last(word)]);
        assert_eq!(
            fold_bytes(OWN, &bytes, 10).unwrap().finish_reason,
            Some(reason),
            "{word}"
        );
    }
    assert_eq!(
        response(OWN, "calls").finish_reason,
        Some(FinishReason::ToolCalls)
    );
}

#[test]
fn absent_counts_are_none() {
    let usage = response(OWN, "text").usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (None, Some(5)));
    assert_eq!(usage.total_tokens(), None);
    let body = json!({"model": "m", "message": {"role": "assistant", "content": "x"}, "done": true});
    assert_eq!(chat::decode_response(OWN, body).unwrap().usage, None);
}

/// Ollama accepts only images; other media is recorded as a loss or must be fetched first.
#[test]
fn unsupported_media_is_recorded_as_loss() {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {"type": "text", "text": "b"},
    ]}]});
    let asked = chat::decode_request(Dialect::OpenaiChat, body).unwrap();
    let converted = request_into(OWN, &asked);
    assert_eq!(
        converted["body"]["messages"][0],
        json!({"role": "user", "content": "a\nb", "images": ["iVBORw0KGgo="]})
    );
    assert!(lost(&converted, "/payload/messages/0/content_parts/2"));
    let body = json!({"messages": [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
    ]}]});
    let asked = chat::decode_request(Dialect::OpenaiChat, body).unwrap();
    let refused = request_into(OWN, &asked)["body"]["error"].clone();
    assert!(
        refused.as_str().unwrap().contains("resolve it first"),
        "{refused}"
    );
}

proptest! {
    #![proptest_config(crate::fixtures::cases(256))]

    #[test]
    fn mutated_ollama_documents_roundtrip(changes in disturbances(), pick: prop::sample::Index) {
        disturbed(OWN, &changes, &pick)?;
    }
}

/// Any bytes, bare and inside a line of the dialect, split into pieces of any size.
#[test]
fn stream_decoder_accepts_arbitrary_bytes() {
    bolero::check!().with_iterations(1500).for_each(|bytes: &[u8]| {
        let text = [
            b"{\"message\":{\"content\":\"".as_slice(),
            bytes,
            b"\"},\"done\":false}\n",
        ]
        .concat();
        let call = [
            b"{\"message\":{\"tool_calls\":[{".as_slice(),
            bytes,
            b"}]},\"done\":true}\n",
        ]
        .concat();
        for framed in [bytes, &text, &call] {
            let mut decoder = Decoder::new(OWN).unwrap();
            let mut events = Vec::new();
            framed
                .chunks(7)
                .for_each(|piece| decoder.push(piece, &mut events));
            decoder.finish(&mut events);
        }
    });
}
