//! The little that some need of a whole answer: who answered, how it ended and what was used, where it is passed on as
//! it is; the words too, where nothing else of it is looked at. The rest is checked to be JSON and not built. Whatever
//! looks unusual is left to those who read all of it.

use std::borrow::Cow;

use ir::{ChatResponse, Dialect, Event, FinishReason, Part, PartBody, Usage};
use memchr::memmem;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::{anthropic, openai_chat};

/// What such an answer says of itself; `None` if it has to be read in full.
pub fn summarize(dialect: Dialect, body: &[u8]) -> Option<Vec<Event>> {
    let text = unmarked(body)?;
    match dialect {
        Dialect::OpenaiChat => completion(serde_json::from_str(text).ok()?),
        Dialect::Anthropic => message(serde_json::from_str(text).ok()?),
        _ => None,
    }
}

/// An answer of nothing but text, for those who look at its words, its end and its account alone; `None` if it has to be
/// read in full.
pub fn text_response(dialect: Dialect, body: &[u8]) -> Option<ChatResponse> {
    let text = unmarked(body)?;
    match dialect {
        Dialect::OpenaiChat => spoken(serde_json::from_str(text).ok()?),
        _ => None,
    }
}

/// A control mark in the text is worth a warning.
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

/// A message of text. Whatever else could be a part of it is looked for, so that it is not missed.
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

fn spoken(answer: Completion<'_, TextMessage<'_>>) -> Option<ChatResponse> {
    let first = answer.choices.into_iter().next()?;
    if answer.error.is_some() || !first.message.is_only_text() || first.message.content.is_empty() {
        return None;
    }
    // JSON can spell a mark so that it is only seen once the text is read.
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

/// What was used, if it was told; `None` if it was told in a form that nobody knows.
fn account(told: Option<Value>, read: impl Fn(&Value) -> Usage) -> Option<Option<Usage>> {
    match told {
        Some(told @ Value::Object(_)) => Some(Some(read(&told))),
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

    /// What is left of an answer for those who look at nothing that a vendor adds.
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
    fn the_usual_answers_are_seen_at_a_glance() {
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
    fn text_is_heard_without_what_stands_around_it() {
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
            let heard = text_response(Dialect::OpenaiChat, body.to_string().as_bytes());
            assert_eq!(
                heard.map(|heard| unfold(&heard)),
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
            assert_eq!(text_response(Dialect::OpenaiChat, body.as_bytes()), None, "{body}");
        }
    }

    #[test]
    fn a_mark_is_seen_however_it_is_spelt() {
        let body = completion().to_string().replace("a \\\"", "\\u003c|channel|>");
        assert!(body.contains("u003c|channel"), "{body}");
        assert_eq!(text_response(Dialect::OpenaiChat, body.as_bytes()), None);
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
            assert_eq!(summarize(Dialect::OpenaiChat, body.as_bytes()), None, "{body}");
        }
        assert_eq!(summarize(Dialect::OpenaiChat, b"{\"choices\":[\xff]}"), None);
        assert_eq!(summarize(Dialect::Gemini, completion().to_string().as_bytes()), None);
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
            if let Some(seen) = summarize(dialect, &bytes) {
                let body: Value = serde_json::from_slice(&bytes).unwrap();
                prop_assert_eq!(Some(seen), in_full(dialect, &body));
            }
            if let Some(heard) = text_response(dialect, &bytes) {
                let body: Value = serde_json::from_slice(&bytes).unwrap();
                prop_assert_eq!(Some(unfold(&heard)), bare(dialect, &body));
            }
        }
    }
}
