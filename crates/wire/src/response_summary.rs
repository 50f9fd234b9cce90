//! A summary of a unary response whose body is forwarded unchanged: id and model, finish reason and usage.
//! The other fields are checked to be valid JSON and not built. A response outside of the common shapes is
//! left to the full decoder.

use std::borrow::Cow;

use ir::{Dialect, Event, FinishReason, Usage};
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

/// The body as text; `None` if it may contain a control token, which requires a warning.
fn unmarked(body: &[u8]) -> Option<&str> {
    match memmem::find(body, b"<|") {
        Some(_) => None,
        None => std::str::from_utf8(body).ok(),
    }
}

type OptText<'a> = Option<Cow<'a, str>>;

#[derive(Deserialize)]
struct Completion<'a> {
    #[serde(borrow, default)]
    id: OptText<'a>,
    #[serde(borrow, default)]
    model: OptText<'a>,
    created: Option<u64>,
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
    usage: Option<Value>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    finish_reason: OptText<'a>,
    #[serde(borrow)]
    message: Role<'a>,
}

#[derive(Deserialize)]
struct Role<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
}

fn completion(answer: Completion<'_>) -> Option<Vec<Event>> {
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
    use ir::{Dialect, Event};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::summarize;
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
        }
    }
}
