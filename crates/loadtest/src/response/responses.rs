//! OpenAI's responses.

use super::{ASKED, Events, content, named};
use crate::behaviour::Behaviour;

pub(super) fn whole(model: &str, behaviour: Behaviour) -> String {
    let item = item("completed", &part(&content(behaviour)));
    response(model, "completed", &item, &usage(behaviour.tokens))
}

pub(super) fn events(model: &str, behaviour: Behaviour) -> Events {
    let place = r#","item_id":"msg_mock","output_index":0,"content_index":0"#;
    let piece = |text: &str| {
        named(
            "response.output_text.delta",
            &format!(r#"{place},"delta":"{text}""#),
        )
    };
    let begun = response(model, "in_progress", "", "null");
    let empty = item("in_progress", "");
    let first = named("response.created", &format!(r#","response":{begun}"#))
        + &named(
            "response.output_item.added",
            &format!(r#","output_index":0,"item":{empty}"#),
        )
        + &named(
            "response.content_part.added",
            &format!(r#"{place},"part":{}"#, part("")),
        );
    let text = content(behaviour);
    let (whole_part, whole) = (part(&text), whole(model, behaviour));
    let done = item("completed", &whole_part);
    let last = named(
        "response.output_text.done",
        &format!(r#"{place},"text":"{text}""#),
    ) + &named(
        "response.content_part.done",
        &format!(r#"{place},"part":{whole_part}"#),
    ) + &named(
        "response.output_item.done",
        &format!(r#","output_index":0,"item":{done}"#),
    ) + &named("response.completed", &format!(r#","response":{whole}"#));
    Events::new(behaviour, first, piece, last)
}

fn response(model: &str, status: &str, output: &str, usage: &str) -> String {
    format!(
        r#"{{"id":"resp_mock","object":"response","created_at":1700000000,"status":"{status}","model":"{model}","output":[{output}],"usage":{usage}}}"#
    )
}

fn item(status: &str, content: &str) -> String {
    format!(
        r#"{{"id":"msg_mock","type":"message","role":"assistant","status":"{status}","content":[{content}]}}"#
    )
}

fn part(text: &str) -> String {
    format!(r#"{{"type":"output_text","text":"{text}","annotations":[]}}"#)
}

fn usage(tokens: u64) -> String {
    let total = tokens + ASKED;
    format!(r#"{{"input_tokens":{ASKED},"output_tokens":{tokens},"total_tokens":{total}}}"#)
}
