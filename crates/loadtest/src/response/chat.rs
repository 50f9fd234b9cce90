//! OpenAI's chat completions.

use super::{ASKED, Events, content};
use crate::behaviour::Behaviour;

pub(super) fn whole(model: &str, behaviour: Behaviour) -> String {
    let content = content(behaviour);
    let usage = usage(behaviour.tokens);
    format!(
        r#"{{"id":"chatcmpl-mock","object":"chat.completion","created":1700000000,"model":"{model}","choices":[{{"index":0,"message":{{"role":"assistant","content":"{content}"}},"logprobs":null,"finish_reason":"stop"}}],"usage":{usage}}}"#
    )
}

pub(super) fn events(model: &str, behaviour: Behaviour) -> Events {
    let base = format!(
        r#"{{"id":"chatcmpl-mock","object":"chat.completion.chunk","created":1700000000,"model":"{model}","#
    );
    let event = |delta: &str, reason: &str| {
        format!(
            "data: {base}\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{reason}}}]}}\n\n"
        )
    };
    let piece = |content: &str| event(&format!(r#"{{"content":"{content}"}}"#), "null");
    let usage = usage(behaviour.tokens);
    let end = event("{}", "\"stop\"");
    let first = event(r#"{"role":"assistant","content":""}"#, "null");
    let last = format!("{end}data: {base}\"choices\":[],\"usage\":{usage}}}\n\ndata: [DONE]\n\n");
    Events::new(behaviour, first, piece, last)
}

fn usage(tokens: u64) -> String {
    let total = tokens + ASKED;
    format!(r#"{{"prompt_tokens":{ASKED},"completion_tokens":{tokens},"total_tokens":{total}}}"#)
}
