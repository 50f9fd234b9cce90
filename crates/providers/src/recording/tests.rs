use std::sync::Arc;

use engine::port::Upstream;
use futures::StreamExt;
use ir::event::{Delta, FinishReason};
use ir::{ChatRequest, ErrorKind, Event, Message, Request, Role, Usage};
use proptest::prelude::*;
use secrecy::SecretString;

use super::{Fingerprint, Recorder, Replay};
use crate::scripted::{Exchange, Recorded, Script, ScriptedUpstream};

fn request(text: &str) -> Request {
    let mut chat = ChatRequest::default();
    chat.messages
        .push(Message::text(Role::System, "Answer.\nIn JSON."));
    chat.messages.push(Message::text(Role::User, text));
    Request::chat("r", chat)
}

fn ask(upstream: &dyn Upstream, text: &str) -> Vec<Event> {
    take(upstream, text, usize::MAX)
}

/// Reads `count` events, then drops the stream.
fn take(upstream: &dyn Upstream, text: &str, count: usize) -> Vec<Event> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(upstream.stream(Arc::new(request(text))).take(count).collect())
}

fn text_of(events: &[Event]) -> String {
    let texts = events.iter().filter_map(|event| match event {
        Event::BlockDelta {
            delta: Delta::Text { text },
            ..
        } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn scripted(yaml: &str) -> Arc<dyn Upstream> {
    Arc::new(ScriptedUpstream::new("live", Script::parse(yaml).unwrap()))
}

fn replayed(recorder: &Recorder) -> Replay {
    let yaml = recorder.script().unwrap().to_yaml().unwrap();
    Replay::new("replay", Script::parse(&yaml).unwrap())
}

#[test]
fn replay_returns_recorded_response() {
    let recorder = Recorder::new(Vec::new());
    let live = recorder.wrap(scripted(
        "- {match: red, reply: \"{\\n  rot\\n}\", chunk_bytes: 3}\n- {match: blue, status: 429}\n",
    ));
    let answers = [ask(&*live, "red"), ask(&*live, "blue")];
    let replay = replayed(&recorder);
    assert_eq!(text_of(&ask(&replay, "red")), text_of(&answers[0]));
    assert_eq!(text_of(&ask(&replay, "red")), "{\n  rot\n}", "repeatedly");
    let events = ask(&replay, "blue");
    let [Event::Error { error }] = events.as_slice() else {
        panic!("not refused")
    };
    assert_eq!((error.kind, error.status), (ErrorKind::RateLimited, Some(429)));
    assert_eq!(replay.backend().label(), live.backend().label());
    assert!(replay.stale().is_empty());
}

/// Runs with the same request have their responses in order; of one run that repeats it, the last response
/// counts.
#[test]
fn repeated_request_replays_responses_in_order() {
    let recorder = Recorder::new(Vec::new());
    let live = recorder.wrap(scripted(
        "- {reply: weak, times: 1}\n- {reply: one, times: 1}\n- {reply: two}\n",
    ));
    for asker in ["first run", "first run", "second run"] {
        let mut request = request("q");
        request.request_id = String::from(asker);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(live.stream(Arc::new(request)).collect::<Vec<_>>());
    }
    let replay = replayed(&recorder);
    let answers: Vec<_> = (0..3).map(|_| text_of(&ask(&replay, "q"))).collect();
    assert_eq!(answers, ["one", "two", "two"]);
}

/// Only the successful attempt is recorded; a stream that was not read to its end is not a response.
#[test]
fn failed_attempts_and_abandoned_calls_are_omitted() {
    let recorder = Recorder::new(Vec::new());
    let live = recorder.wrap(scripted(
        "- {status: 503, times: 1}\n- {reply: cut off, cut_after_bytes: 3, times: 1}\n- {reply: abandoned, chunk_bytes: 1, times: 1}\n- {reply: good}\n",
    ));
    ask(&*live, "q");
    ask(&*live, "q");
    take(&*live, "q", 4);
    ask(&*live, "q");
    let script = recorder.script().unwrap();
    assert_eq!(script.0.len(), 1, "{script:#?}");
    assert_eq!(text_of(&ask(&replayed(&recorder), "q")), "good");
}

#[test]
fn changed_request_is_stale_with_difference() {
    let recorder = Recorder::new(Vec::new());
    let live = recorder.wrap(scripted("- {reply: fine}\n"));
    ask(&*live, "Count the sheep.\nThen sleep.");
    let replay = replayed(&recorder);
    let events = ask(&replay, "Count the goats.\nThen sleep.");
    let [Event::Error { error }] = events.as_slice() else {
        panic!("it was answered")
    };
    assert_eq!(error.provider_code.as_deref(), Some("stale_recording"));
    assert_eq!(error.retry_scope(), ir::error::RetryScope::Never);
    let [stale] = replay.stale().try_into().unwrap();
    let changed: Vec<&str> = stale
        .difference
        .lines()
        .filter(|line| line.starts_with(['-', '+']) && !line.starts_with("---") && !line.starts_with("+++"))
        .map(str::trim_end)
        .collect();
    assert_eq!(changed.len(), 2, "{}", stale.difference);
    assert!(changed[0].starts_with('-') && changed[0].contains("sheep"));
    assert!(changed[1].starts_with('+') && changed[1].contains("goats"));
}

#[test]
fn fingerprint_ignores_ids_times_and_routing() {
    let first = request("q");
    let mut again = request("q");
    again.request_id = String::from("other");
    again.task_id = Some(String::from("t"));
    again.meta.created_at_ms = Some(7);
    again.meta.trace_id = Some(String::from("trace"));
    again.timeout_ms = Some(9);
    if let ir::Payload::Chat(chat) = &mut again.payload {
        chat.model = Some(String::from("another"));
        chat.generation.stream = Some(true);
    }
    assert_eq!(Fingerprint::of(&first), Fingerprint::of(&again));
    assert_ne!(
        Fingerprint::of(&first).sha256,
        Fingerprint::of(&request("r")).sha256
    );
}

/// A change here makes all existing recordings stale, so it must be intentional.
#[test]
fn fingerprint_is_stable() {
    let hash = Fingerprint::of(&request("How many?")).sha256;
    assert_eq!(
        hash,
        "11983c8bc8fa74f9487009bc84f14a89834aaea0e4b27ad08199f5f86bba6d36"
    );
}

#[test]
fn recording_contains_no_key() {
    const KEY: &str = "tops3cret-value";
    let recorder = Recorder::new(vec![SecretString::from(KEY)]);
    let echo = format!("- {{match: echo, reply: 'you sent {KEY}'}}\n");
    let live = recorder.wrap(scripted(&echo));
    ask(&*live, &format!("echo {KEY}"));
    let message = format!(
        "Incorrect API key provided: sk-proj-abcdef123456; header Authorization: Bearer {KEY}x, key {KEY}"
    );
    let error = ir::Error::new(ErrorKind::Auth, ir::error::Phase::BeforeFirstByte, message);
    let refusing = Script(vec![Exchange {
        events: Some(vec![Event::Error { error }]),
        ..Exchange::default()
    }]);
    ask(
        &*recorder.wrap(Arc::new(ScriptedUpstream::new("no", refusing))),
        "other",
    );
    let yaml = recorder.script().unwrap().to_yaml().unwrap();
    assert!(!yaml.contains(KEY) && !yaml.contains("sk-proj"), "{yaml}");
    assert!(yaml.contains("Incorrect API key provided: [redacted]"), "{yaml}");
    // The fingerprint is computed before redaction.
    let replay = Replay::new("r", Script::parse(&yaml).unwrap());
    assert_eq!(
        text_of(&ask(&replay, &format!("echo {KEY}"))),
        "you sent [redacted]"
    );
}

proptest! {
    /// Any response and any request text are restored from the file unchanged.
    #[test]
    fn any_text_roundtrips_through_yaml(answer in "(?s).*", asked in "(?s).*", name in "[ -~\\n\\t:#|>-]*") {
        let events = vec![
            Event::Started { id: None, model: Some(name.clone()), created: None },
            Event::text(0, answer),
            Event::Usage { usage: Usage { input_tokens: Some(3), ..Usage::default() } },
            Event::Finish { reason: FinishReason::Other(name) },
        ];
        let script = Script(vec![Exchange {
            request: Some(Recorded {
                sha256: String::from("0"),
                asked: serde_json::json!({"text": asked, "list": [asked, null, 1.5, true, {}, []]}),
            }),
            events: Some(events),
            ..Exchange::default()
        }]);
        let yaml = script.to_yaml().unwrap();
        prop_assert_eq!(Script::parse(&yaml).unwrap(), script, "{}", yaml);
    }
}
