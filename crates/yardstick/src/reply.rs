//! The upstream's words: OpenAI chat completions, whole and as events. Written by hand as text, because the
//! upstream must cost as little as it can.

use bytes::Bytes;

use crate::behaviour::{Behaviour, Form};

/// One token. The load counts them.
pub(crate) const TOKEN: &str = "tok ";

const ENVELOPE_HEAD: &str = r#"{\"ok\":true,\"meta\":{\"confidence\":0.95,\"risk\":\"low\",\"explain\":\"fine\"},\"data\":{\"result\":\"r\",\"rationale\":\""#;
const ENVELOPE_TAIL: &str = r#"\"}}"#;

/// Tokens of the question, as the upstream counts them.
const ASKED: u64 = 8;

pub(crate) fn whole(model: &str, behaviour: Behaviour) -> String {
    let tokens = TOKEN.repeat(usize::try_from(behaviour.tokens).unwrap_or(usize::MAX));
    let content = match behaviour.form {
        Form::Text => tokens,
        Form::Envelope => format!("{ENVELOPE_HEAD}{tokens}{ENVELOPE_TAIL}"),
    };
    let usage = usage(behaviour.tokens);
    format!(
        r#"{{"id":"chatcmpl-mock","object":"chat.completion","created":1700000000,"model":"{model}","choices":[{{"index":0,"message":{{"role":"assistant","content":"{content}"}},"logprobs":null,"finish_reason":"stop"}}],"usage":{usage}}}"#
    )
}

/// The events of a stream, made once for each answer.
pub(crate) struct Events {
    pub(crate) first: Bytes,
    pub(crate) head: Option<Bytes>,
    pub(crate) token: Bytes,
    pub(crate) tail: Option<Bytes>,
    pub(crate) last: Bytes,
}

impl Events {
    pub(crate) fn new(model: &str, behaviour: Behaviour) -> Self {
        let base = format!(
            r#"{{"id":"chatcmpl-mock","object":"chat.completion.chunk","created":1700000000,"model":"{model}","#
        );
        let event = |delta: &str, reason: &str| {
            format!(
                "data: {base}\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{reason}}}]}}\n\n"
            )
        };
        let piece = |content: &str| Bytes::from(event(&format!(r#"{{"content":"{content}"}}"#), "null"));
        let framed = behaviour.form == Form::Envelope;
        let usage = usage(behaviour.tokens);
        let end = event("{}", "\"stop\"");
        Self {
            first: Bytes::from(event(r#"{"role":"assistant","content":""}"#, "null")),
            head: framed.then(|| piece(ENVELOPE_HEAD)),
            token: piece(TOKEN),
            tail: framed.then(|| piece(ENVELOPE_TAIL)),
            last: Bytes::from(format!(
                "{end}data: {base}\"choices\":[],\"usage\":{usage}}}\n\ndata: [DONE]\n\n"
            )),
        }
    }
}

fn usage(tokens: u64) -> String {
    let total = tokens + ASKED;
    format!(r#"{{"prompt_tokens":{ASKED},"completion_tokens":{tokens},"total_tokens":{total}}}"#)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn whole_and_streamed_say_the_same() {
        for model in ["mock-t3", "mock-env-t3"] {
            let behaviour = Behaviour::of(model);
            let whole: Value = serde_json::from_str(&whole(model, behaviour)).unwrap();
            let events = Events::new(model, behaviour);
            let mut text = String::new();
            let all = [Some(events.first), events.head]
                .into_iter()
                .chain((0..3).map(|_| Some(events.token.clone())))
                .chain([events.tail, Some(events.last)]);
            for bytes in all.flatten() {
                text.push_str(std::str::from_utf8(&bytes).unwrap());
            }
            let mut content = String::new();
            let mut usage = Value::Null;
            for data in text
                .split("\n\n")
                .filter_map(|event| event.strip_prefix("data: "))
            {
                let Ok(event) = serde_json::from_str::<Value>(data) else {
                    assert_eq!(data, "[DONE]");
                    continue;
                };
                content.push_str(
                    event["choices"][0]["delta"]["content"]
                        .as_str()
                        .unwrap_or_default(),
                );
                usage = event["usage"].clone();
            }
            assert_eq!(whole["choices"][0]["message"]["content"], content);
            assert_eq!(whole["usage"], usage);
        }
    }
}
