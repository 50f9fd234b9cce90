//! The little that accounts need of a whole answer which is passed on as it is: who answered, how it ended, what was
//! used. The rest is checked to be JSON and not built. Whatever looks unusual is left to those who read all of it.

use std::borrow::Cow;

use ir::{Dialect, Event, FinishReason, Usage};
use memchr::memmem;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::{anthropic, openai_chat};

/// What such an answer says of itself; `None` if it has to be read in full.
pub fn at(dialect: Dialect, body: &[u8]) -> Option<Vec<Event>> {
    let text = std::str::from_utf8(body).ok()?;
    // A control mark in the text is worth a warning.
    if memmem::find(body, b"<|").is_some() {
        return None;
    }
    match dialect {
        Dialect::OpenaiChat => completion(serde_json::from_str(text).ok()?),
        Dialect::Anthropic => message(serde_json::from_str(text).ok()?),
        _ => None,
    }
}

type Word<'a> = Option<Cow<'a, str>>;

#[derive(Deserialize)]
struct Completion<'a> {
    #[serde(borrow, default)]
    id: Word<'a>,
    #[serde(borrow, default)]
    model: Word<'a>,
    created: Option<u64>,
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
    usage: Option<Value>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    finish_reason: Word<'a>,
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
    let usage = match answer.usage {
        Some(usage @ Value::Object(_)) => Some(openai_chat::usage::decode(&usage, Dialect::OpenaiChat)),
        Some(_) => return None,
        None => None,
    };
    Some(events((answer.id, answer.model, answer.created), usage, reason))
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    id: Word<'a>,
    #[serde(borrow, default)]
    model: Word<'a>,
    #[serde(rename = "content")]
    _content: Vec<IgnoredAny>,
    #[serde(borrow, default)]
    stop_reason: Word<'a>,
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
    let usage = match answer.usage {
        Some(usage @ Value::Object(_)) => Some(anthropic::usage::decode(&usage)),
        Some(_) => return None,
        None => None,
    };
    Some(events((answer.id, answer.model, None), usage, reason))
}

fn events(
    (id, model, created): (Word<'_>, Word<'_>, Option<u64>),
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

    use super::at;
    use crate::chat::decode_response;

    /// What accounts take from all of an answer.
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
    fn the_usual_answers_are_seen_at_a_glance() {
        for (dialect, body) in [
            (Dialect::OpenaiChat, completion()),
            (Dialect::Anthropic, message()),
        ] {
            let seen = at(dialect, body.to_string().as_bytes());
            assert!(seen.is_some());
            assert_eq!(seen, in_full(dialect, &body));
        }
    }

    #[test]
    fn what_is_unusual_is_left_alone() {
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
            assert_eq!(at(Dialect::OpenaiChat, body.as_bytes()), None, "{body}");
        }
        assert_eq!(at(Dialect::OpenaiChat, b"{\"choices\":[\xff]}"), None);
        assert_eq!(at(Dialect::Gemini, completion().to_string().as_bytes()), None);
    }

    proptest! {
        /// Whatever is broken or taken away: what is seen is never other than what is there.
        #[test]
        fn a_glance_never_sees_what_is_not_there(cut in 0_usize..400, other in any::<bool>(), byte in any::<u8>()) {
            let (dialect, body) = match other {
                true => (Dialect::OpenaiChat, completion()),
                false => (Dialect::Anthropic, message()),
            };
            let mut bytes = body.to_string().into_bytes();
            let at_byte = cut % bytes.len();
            bytes[at_byte] = byte;
            if let Some(seen) = at(dialect, &bytes) {
                let body: Value = serde_json::from_slice(&bytes).unwrap();
                prop_assert_eq!(Some(seen), in_full(dialect, &body));
            }
        }
    }
}
