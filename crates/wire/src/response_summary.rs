//! A summary of a unary response: id and model, finish reason and usage where the body is forwarded
//! unchanged, and the text as well where only text is needed. The other fields are checked to be valid JSON
//! and not built. A response outside of the common shapes is left to the full decoder.

use std::borrow::Cow;

use ir::{ChatResponse, Dialect, Event, FinishReason, Part, PartBody, Usage};
use memchr::memmem;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::{anthropic, openai_chat};

/// The summary of a response as events; `None` if the response needs the full decoder.
pub fn summarize(dialect: Dialect, body: &[u8]) -> Option<Vec<Event>> {
    let text = unmarked(body)?;
    match dialect {
        Dialect::OpenaiChat => completion(serde_json::from_str(text).ok()?),
        Dialect::Anthropic => message(serde_json::from_str(text).ok()?),
        _ => None,
    }
}

/// A text-only response for callers that use only its text, finish reason and usage; `None` if the response
/// needs the full decoder.
pub fn text_response(dialect: Dialect, body: &[u8]) -> Option<ChatResponse> {
    let text = unmarked(body)?;
    match dialect {
        Dialect::OpenaiChat => text_completion(serde_json::from_str(text).ok()?),
        _ => None,
    }
}

/// Whether the text may contain a control token, which requires a warning.
fn is_marked(text: &[u8]) -> bool {
    memmem::find(text, b"<|").is_some()
}

fn unmarked(body: &[u8]) -> Option<&str> {
    match is_marked(body) {
        true => None,
        false => std::str::from_utf8(body).ok(),
    }
}

type OptText<'a> = Option<Cow<'a, str>>;

#[derive(Deserialize)]
struct Completion<'a, M> {
    #[serde(borrow, default)]
    id: OptText<'a>,
    #[serde(borrow, default)]
    model: OptText<'a>,
    created: Option<u64>,
    #[serde(borrow, bound(deserialize = "M: Deserialize<'de>"))]
    choices: Vec<Choice<'a, M>>,
    usage: Option<Value>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Choice<'a, M> {
    #[serde(borrow, default)]
    finish_reason: OptText<'a>,
    message: M,
}

#[derive(Deserialize)]
struct Role<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
}

/// A text message. The other content fields are declared so that their presence is detected.
#[derive(Deserialize)]
struct TextMessage<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    content: String,
    tool_calls: Option<Vec<IgnoredAny>>,
    function_call: Option<IgnoredAny>,
    reasoning_content: Option<IgnoredAny>,
    reasoning: Option<IgnoredAny>,
    refusal: Option<IgnoredAny>,
    audio: Option<IgnoredAny>,
    images: Option<IgnoredAny>,
}

impl TextMessage<'_> {
    fn is_only_text(&self) -> bool {
        let others = [
            &self.function_call,
            &self.reasoning_content,
            &self.reasoning,
            &self.refusal,
            &self.audio,
            &self.images,
        ];
        let calls = self.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty());
        self.role == "assistant" && !calls && others.into_iter().all(Option::is_none)
    }
}

fn text_completion(answer: Completion<'_, TextMessage<'_>>) -> Option<ChatResponse> {
    let first = answer.choices.into_iter().next()?;
    if answer.error.is_some() || !first.message.is_only_text() || first.message.content.is_empty() {
        return None;
    }
    // JSON escapes can hide a token until the text is decoded.
    if is_marked(first.message.content.as_bytes()) {
        return None;
    }
    let finish_reason = match first.finish_reason.as_deref()? {
        "stop" => FinishReason::Stop,
        "length" => FinishReason::Length,
        _ => return None,
    };
    let usage = account(answer.usage, openai_chat::usage::counted)?;
    Some(ChatResponse {
        id: answer.id.map(Cow::into_owned),
        model: answer.model.map(Cow::into_owned),
        created: answer.created,
        parts: vec![Part::from(PartBody::Text(first.message.content))],
        usage,
        finish_reason: Some(finish_reason),
        ..ChatResponse::default()
    })
}

fn completion(answer: Completion<'_, Role<'_>>) -> Option<Vec<Event>> {
    let first = answer.choices.first()?;
    if answer.error.is_some() || first.message.role != "assistant" {
        return None;
    }
    let reason = match first.finish_reason.as_deref()? {
        "stop" => FinishReason::Stop,
        "length" => FinishReason::Length,
        "tool_calls" => FinishReason::ToolCalls,
        _ => return None,
    };
    let usage = account(answer.usage, |usage| {
        openai_chat::usage::decode(usage, Dialect::OpenaiChat)
    })?;
    Some(events((answer.id, answer.model, answer.created), usage, reason))
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    id: OptText<'a>,
    #[serde(borrow, default)]
    model: OptText<'a>,
    #[serde(rename = "content")]
    _content: Vec<IgnoredAny>,
    #[serde(borrow, default)]
    stop_reason: OptText<'a>,
    usage: Option<Value>,
    error: Option<IgnoredAny>,
}

fn message(answer: Message<'_>) -> Option<Vec<Event>> {
    if answer.error.is_some() || answer.kind != "message" {
        return None;
    }
    let reason = match answer.stop_reason.as_deref()? {
        "end_turn" => FinishReason::Stop,
        "max_tokens" => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        _ => return None,
    };
    let usage = account(answer.usage, anthropic::usage::decode)?;
    Some(events((answer.id, answer.model, None), usage, reason))
}

/// The usage, if present; `None` if its shape is unknown.
fn account(usage: Option<Value>, read: impl Fn(&Value) -> Usage) -> Option<Option<Usage>> {
    match usage {
        Some(usage @ Value::Object(_)) => Some(Some(read(&usage))),
        Some(_) => None,
        None => Some(None),
    }
}

fn events(
    (id, model, created): (OptText<'_>, OptText<'_>, Option<u64>),
    usage: Option<Usage>,
    reason: FinishReason,
) -> Vec<Event> {
    let started = Event::Started {
        id: id.map(Cow::into_owned),
        model: model.map(Cow::into_owned),
        created,
    };
    let usage = usage.map(|usage| Event::Usage { usage });
    let finish = Event::Finish { reason };
    [Some(started), usage, Some(finish)]
        .into_iter()
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use ir::fold::unfold;
    use ir::{Delta, Dialect, Event};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{summarize, text_response};
    use crate::chat::decode_response;

    /// The same events from the full decoder.
    fn in_full(dialect: Dialect, body: &Value) -> Option<Vec<Event>> {
        let events = unfold(&decode_response(dialect, body.clone()).ok()?);
        let kept = events.into_iter().filter(|event| {
            matches!(
                event,
                Event::Started { .. } | Event::Usage { .. } | Event::Finish { .. }
            )
        });
        Some(kept.collect())
    }

    /// The events of the full decoder without vendor-specific fields.
    fn bare(dialect: Dialect, body: &Value) -> Option<Vec<Event>> {
        let events = unfold(&decode_response(dialect, body.clone()).ok()?);
        let kept = events.into_iter().filter(|event| {
            let delta = |event: &Event| {
                matches!(
                    event,
                    Event::BlockDelta {
                        delta: Delta::Meta { .. },
                        ..
                    }
                )
            };
            !matches!(event, Event::Meta { .. }) && !delta(event)
        });
        let unsaid = kept.map(|event| match event {
            Event::Usage { mut usage } => {
                usage.raw = None;
                Event::Usage { usage }
            }
            event => event,
        });
        Some(unsaid.collect())
    }

    fn completion() -> Value {
        json!({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 3, "model": "m",
            "choices": [{
                "index": 0, "finish_reason": "stop",
                "message": {"role": "assistant", "content": "a \" \u{e4}", "refusal": null}
            }],
            "usage": {
                "prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7, "cost": 0.25,
                "prompt_tokens_details": {"cached_tokens": 2, "audio_tokens": 1}
            }
        })
    }

    fn message() -> Value {
        json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
            "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 5}
        })
    }

    #[test]
    fn summarizes_common_responses() {
        for (dialect, body) in [
            (Dialect::OpenaiChat, completion()),
            (Dialect::Anthropic, message()),
        ] {
            let seen = summarize(dialect, body.to_string().as_bytes());
            assert!(seen.is_some());
            assert_eq!(seen, in_full(dialect, &body));
        }
    }

    #[test]
    fn text_response_ignores_other_fields() {
        let chat = |pointer: &str, value: Value| {
            let mut body = completion();
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            body.pointer_mut(parent).unwrap()[key] = value;
            body
        };
        for body in [
            completion(),
            chat("/timings", json!({"predicted_ms": 3.5})),
            chat("/choices/0/message/tool_calls", json!([])),
            chat("/choices/0/message/reasoning_content", Value::Null),
            chat("/choices/0/logprobs", json!({"content": [{"token": "a"}]})),
            chat("/choices/0/finish_reason", json!("length")),
        ] {
            let response = text_response(Dialect::OpenaiChat, body.to_string().as_bytes());
            assert_eq!(
                response.map(|response| unfold(&response)),
                bare(Dialect::OpenaiChat, &body)
            );
        }
        for (pointer, value) in [
            ("/choices/0/message/reasoning_content", json!("hm")),
            ("/choices/0/message/reasoning", json!("hm")),
            ("/choices/0/message/refusal", json!("no")),
            ("/choices/0/message/tool_calls", json!([{"id": "1"}])),
            ("/choices/0/message/function_call", json!({"name": "f"})),
            ("/choices/0/message/audio", json!({"data": "AA=="})),
            ("/choices/0/message/images", json!([{}])),
            (
                "/choices/0/message/content",
                json!([{"type": "text", "text": "a"}]),
            ),
            ("/choices/0/message/content", Value::Null),
            ("/choices/0/message/content", json!("")),
            ("/choices/0/message/content", json!("<|end|>")),
            ("/choices/0/finish_reason", json!("tool_calls")),
            ("/error", json!({"message": "busy"})),
            ("/usage", json!(3)),
        ] {
            let body = chat(pointer, value).to_string();
            assert_eq!(
                text_response(Dialect::OpenaiChat, body.as_bytes()),
                None,
                "{body}"
            );
        }
    }

    #[test]
    fn escaped_control_token_is_detected() {
        let body = completion().to_string().replace("a \\\"", "\\u003c|channel|>");
        assert!(body.contains("u003c|channel"), "{body}");
        assert_eq!(text_response(Dialect::OpenaiChat, body.as_bytes()), None);
    }

    #[test]
    fn uncommon_responses_need_full_decoding() {
        let chat = |pointer: &str, value: Value| {
            let mut body = completion();
            *body.pointer_mut(pointer).unwrap() = value;
            body.to_string()
        };
        for body in [
            String::from("{}"),
            String::from("[]"),
            String::from("{\"error\": \"busy\"}"),
            chat("/choices", json!([])),
            chat("/choices/0/finish_reason", json!("content_filter")),
            chat("/choices/0/finish_reason", Value::Null),
            chat("/choices/0/message", json!([])),
            chat("/choices/0/message/content", json!("<|channel|>")),
            chat("/usage", json!(7)),
            completion()
                .to_string()
                .replace("\"object\"", "\"error\":{},\"object\""),
        ] {
            assert_eq!(summarize(Dialect::OpenaiChat, body.as_bytes()), None, "{body}");
        }
        assert_eq!(summarize(Dialect::OpenaiChat, b"{\"choices\":[\xff]}"), None);
        assert_eq!(
            summarize(Dialect::Gemini, completion().to_string().as_bytes()),
            None
        );
    }

    proptest! {
        /// For any damaged or truncated body, a summary equals the summary of the full decoder.
        #[test]
        fn summary_matches_full_decoding(cut in 0_usize..400, other in any::<bool>(), byte in any::<u8>()) {
            let (dialect, body) = match other {
                true => (Dialect::OpenaiChat, completion()),
                false => (Dialect::Anthropic, message()),
            };
            let mut bytes = body.to_string().into_bytes();
            let at_byte = cut % bytes.len();
            bytes[at_byte] = byte;
            if let Some(seen) = summarize(dialect, &bytes) {
                let body: Value = serde_json::from_slice(&bytes).unwrap();
                prop_assert_eq!(Some(seen), in_full(dialect, &body));
            }
            if let Some(response) = text_response(dialect, &bytes) {
                let body: Value = serde_json::from_slice(&bytes).unwrap();
                prop_assert_eq!(Some(unfold(&response)), bare(dialect, &body));
            }
        }
    }
}
