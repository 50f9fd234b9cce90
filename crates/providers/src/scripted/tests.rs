use std::sync::Arc;

use engine::port::Upstream;
use futures::StreamExt;
use ir::event::Delta;
use ir::{ChatRequest, ErrorKind, Event, Message, Request, Role};

use super::{Script, ScriptedUpstream};

fn scripted(yaml: &str) -> ScriptedUpstream {
    ScriptedUpstream::new("test", Script::parse(yaml).unwrap())
}

fn ask(upstream: &ScriptedUpstream, text: &str) -> Vec<Event> {
    let mut chat = ChatRequest::default();
    chat.messages.push(Message::text(Role::User, text));
    let request = Request::chat("r", chat);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(upstream.stream(Arc::new(request)).collect())
}

fn texts(events: &[Event]) -> Vec<&str> {
    let texts = events.iter().filter_map(|event| match event {
        Event::BlockDelta {
            delta: Delta::Text { text },
            ..
        } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn finished(events: &[Event]) -> bool {
    events.iter().any(|event| matches!(event, Event::Finish { .. }))
}

#[test]
fn first_matching_exchange_is_used_up_to_its_limit() {
    let upstream =
        scripted("- {match: red, reply: one, times: 1}\n- {match: red, reply: two}\n- {reply: any}\n");
    assert_eq!(texts(&ask(&upstream, "a red hat")), ["one"]);
    assert_eq!(texts(&ask(&upstream, "a red hat")), ["two"]);
    assert_eq!(texts(&ask(&upstream, "a blue hat")), ["any"]);
}

#[test]
fn mapping_reply_is_serialized_as_json() {
    let upstream = scripted("- reply: {ok: true, data: {n: 1}}\n");
    assert_eq!(texts(&ask(&upstream, "")), [r#"{"ok":true,"data":{"n":1}}"#]);
}

#[test]
fn pieces_split_at_character_boundaries_without_loss() {
    for bytes in 1..12 {
        let upstream = scripted(&format!("- {{reply: \"aé日x🙂z\", chunk_bytes: {bytes}}}\n"));
        let events = ask(&upstream, "");
        assert_eq!(texts(&events).concat(), "aé日x🙂z");
        assert!(finished(&events));
    }
}

#[test]
fn truncated_reply_has_no_finish_event() {
    for cut in 0..=6 {
        let upstream = scripted(&format!("- {{reply: \"aé日\", cut_after_bytes: {cut}}}\n"));
        let events = ask(&upstream, "");
        assert!(!finished(&events));
        let text = texts(&events).concat();
        assert!(text.len() <= cut && "aé日".starts_with(&text), "{cut}: {text}");
    }
}

#[test]
fn status_maps_to_error_kind() {
    for (status, kind) in [
        (429, ErrorKind::RateLimited),
        (503, ErrorKind::Upstream),
        (401, ErrorKind::Auth),
    ] {
        let events = ask(&scripted(&format!("- status: {status}\n")), "");
        let [Event::Error { error }] = events.as_slice() else {
            panic!("{events:?}")
        };
        assert_eq!((error.kind, error.status), (kind, Some(status)));
    }
}

#[test]
fn retry_after_header_sets_retry_delay() {
    let events = ask(&scripted("- {status: 429, headers: {Retry-After: '7'}}\n"), "");
    let [Event::Error { error }] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!(error.retry_after_ms, Some(7000));
}

#[test]
fn scripts_are_parsed_strictly() {
    for wrong in [
        "- {reply: a, repyl: b}",
        "- {match: a}",
        "- {reply: a, status: 500}",
        "reply: a",
        "- {reply: a, times: often}",
    ] {
        assert!(Script::parse(wrong).is_err(), "{wrong}");
    }
}
