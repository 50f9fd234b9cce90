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

/// Listens to so many events, then hangs up.
fn take(upstream: &dyn Upstream, text: &str, count: usize) -> Vec<Event> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(upstream.stream(Arc::new(request(text))).take(count).collect())
}

fn said(events: &[Event]) -> String {
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
fn what_was_recorded_is_said_again() {
    let recorder = Recorder::new(Vec::new());
    let live = recorder.wrap(scripted(
        "- {match: red, reply: \"{\\n  rot\\n}\", chunk_bytes: 3}\n- {match: blue, status: 429}\n",
    ));
    let answers = [ask(&*live, "red"), ask(&*live, "blue")];
    let replay = replayed(&recorder);
    assert_eq!(said(&ask(&replay, "red")), said(&answers[0]));
    assert_eq!(said(&ask(&replay, "red")), "{\n  rot\n}", "as often as one likes");
    let events = ask(&replay, "blue");
    let [Event::Error { error }] = events.as_slice() else {
        panic!("not refused")
    };
    assert_eq!((error.kind, error.status), (ErrorKind::RateLimited, Some(429)));
    assert_eq!(replay.backend().label(), live.backend().label());
    assert!(replay.stale().is_empty());
}

/// Runs that ask the same have their answers in order; of one run that asks again the last answer counts.
#[test]
fn one_question_asked_twice_has_its_answers_in_order() {
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
    let answers: Vec<_> = (0..3).map(|_| said(&ask(&replay, "q"))).collect();
    assert_eq!(answers, ["one", "two", "two"]);
}

/// What led to the answer is kept, not the way there; what nobody heard to its end is no answer.
#[test]
fn failures_on_the_way_and_abandoned_calls_are_left_out() {
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
    assert_eq!(said(&ask(&replayed(&recorder), "q")), "good");
}

#[test]
fn another_question_is_stale_and_says_what_has_changed() {
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
fn who_asks_when_and_whom_is_not_part_of_the_question() {
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

/// A change here makes every recording in the world stale: it must not happen by accident.
#[test]
fn the_hash_of_a_question_stays_what_it_is() {
    let hash = Fingerprint::of(&request("How many?")).sha256;
    assert_eq!(
        hash,
        "11983c8bc8fa74f9487009bc84f14a89834aaea0e4b27ad08199f5f86bba6d36"
    );
}

#[test]
fn no_key_is_ever_written_down() {
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
    ask(&*recorder.wrap(Arc::new(ScriptedUpstream::new("no", refusing))), "other");
    let yaml = recorder.script().unwrap().to_yaml().unwrap();
    assert!(!yaml.contains(KEY) && !yaml.contains("sk-proj"), "{yaml}");
    assert!(yaml.contains("Incorrect API key provided: [redacted]"), "{yaml}");
    // The question is still known by what it really was.
    let replay = Replay::new("r", Script::parse(&yaml).unwrap());
    assert_eq!(said(&ask(&replay, &format!("echo {KEY}"))), "you sent [redacted]");
}

proptest! {
    /// Whatever a model says and whatever it is asked, the recording is read back as it was.
    #[test]
    fn any_text_survives_the_file(answer in "(?s).*", asked in "(?s).*", name in "[ -~\\n\\t:#|>-]*") {
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
