//! Anthropic's messages.

use super::{ASKED, Events, content, named};
use crate::behaviour::Behaviour;

pub(super) fn whole(model: &str, behaviour: Behaviour) -> String {
    let (content, tokens) = (content(behaviour), behaviour.tokens);
    format!(
        r#"{{"id":"msg_mock","type":"message","role":"assistant","model":"{model}","content":[{{"type":"text","text":"{content}"}}],"stop_reason":"end_turn","stop_sequence":null,"usage":{{"input_tokens":{ASKED},"output_tokens":{tokens}}}}}"#
    )
}

pub(super) fn events(model: &str, behaviour: Behaviour) -> Events {
    let piece = |text: &str| {
        let delta = format!(r#","index":0,"delta":{{"type":"text_delta","text":"{text}"}}"#);
        named("content_block_delta", &delta)
    };
    let message = format!(
        r#","message":{{"id":"msg_mock","type":"message","role":"assistant","model":"{model}","content":[],"stop_reason":null,"stop_sequence":null,"usage":{{"input_tokens":{ASKED},"output_tokens":1}}}}"#
    );
    let block = r#","index":0,"content_block":{"type":"text","text":""}"#;
    let first = named("message_start", &message) + &named("content_block_start", block);
    let tokens = behaviour.tokens;
    let delta = format!(
        r#","delta":{{"stop_reason":"end_turn","stop_sequence":null}},"usage":{{"output_tokens":{tokens}}}"#
    );
    let last = named("content_block_stop", r#","index":0"#)
        + &named("message_delta", &delta)
        + &named("message_stop", "");
    Events::new(behaviour, first, piece, last)
}
