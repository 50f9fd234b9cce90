use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use engine::port::{Archive, EncodedEvent, EventKind, Journal, NewRun, RunState, Upstream};
use engine::run::{ResumePoint, RunOptions, envelope};
use engine::{
    Admission, Engine, Fleet, Modules, Permit, Ports, Queue, ReadFrom, RunMode, RunRequest, Settings,
    Subscription, Tenant,
};
use futures::FutureExt;
use ir::RunId;
use module::stream::{Assembled, assemble_ndjson};
use module::{FileMap, Module, load};
use serde_json::json;
use store::memory::MemoryJournal;
use testkit::clock::ManualClock;
use testkit::manual_upstream::ManualUpstream;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::faulty_journal::FaultyJournal;

pub(crate) const OPENING: &str =
    r#"{"ok":true,"meta":{"confidence":1,"risk":"none","explain":"e"},"data":{"rationale":""#;
pub(crate) const SOON: Duration = Duration::from_secs(10);

pub(crate) fn module() -> Arc<Module> {
    let files: FileMap = [
        ("module.yaml", "name: m\nversion: 1.0.0\nresponsibility: r\ntier: decision\nresponse: {mode: both, buffer_size: 0}\n"),
        ("prompt.md", "$INPUT"),
        ("schema.json", r#"{"data":{"type":"object","required":["rationale"]}}"#),
    ]
    .into_iter()
    .collect();
    Arc::new(load(&files).module.unwrap())
}

pub(crate) fn engine(journal: Arc<dyn Journal>, upstream: Arc<dyn Upstream>, settings: Settings) -> Engine {
    let ports = Ports {
        fleet: Arc::new(Fleet::in_order([upstream])),
        journal,
        clock: Arc::new(ManualClock::default()),
    };
    let modules: Modules = [(String::from("m"), module())].into_iter().collect();
    Engine::new(ports, settings, modules)
}

pub(crate) fn execute(mode: RunMode) -> RunRequest {
    RunRequest {
        module: module(),
        input: json!({}),
        mode,
        options: RunOptions::default(),
        warnings: Vec::new(),
        admission: Admission::default(),
    }
}

pub(crate) async fn start(engine: &Engine, mode: RunMode) -> (RunId, Subscription) {
    let tenant = Tenant::local();
    let started = engine.start(&tenant, execute(mode)).await.unwrap();
    (started.id, started.subscription)
}

pub(crate) async fn rest(mut subscription: Subscription) -> Vec<EncodedEvent> {
    let mut events = Vec::new();
    while let Some(batch) = timeout(SOON, subscription.next()).await.unwrap().unwrap() {
        events.extend(batch);
    }
    events
}

pub(crate) fn assemble(events: &[EncodedEvent]) -> Assembled {
    let lines: Vec<&str> = events.iter().map(|event| &*event.body).collect();
    let assembled = assemble_ndjson(lines.join("\n").as_bytes());
    assert!(assembled.violations.is_empty(), "{:?}", assembled.violations);
    assert_eq!(events.iter().filter(|event| event.kind.is_terminal()).count(), 1);
    assembled
}

#[tokio::test]
async fn slow_reader_catches_up_from_the_journal() {
    let puppet = ManualUpstream::new("p");
    let engine = engine(
        Arc::new(MemoryJournal::default()),
        puppet.clone(),
        Settings::default(),
    );
    let (run, mut slow) = start(&engine, RunMode::Stream).await;
    let first = slow.next().await.unwrap().unwrap();
    let quick = engine
        .subscribe(&Tenant::local(), run, ReadFrom::Start)
        .await
        .unwrap();
    let strings = puppet.attempt().await;
    strings.text(OPENING).await;
    for number in 0..2_000 {
        strings.text(&format!("{number} ")).await;
    }
    strings.text("\"}}").await;
    strings.finish().await;
    let quick = rest(quick).await;
    let slow = [first, rest(slow).await].concat();
    assert_eq!(slow, quick);
    let words: Vec<String> = (0..2_000).map(|number| format!("{number} ")).collect();
    assert_eq!(assemble(&slow).envelope["data"]["rationale"], words.concat());
}

#[tokio::test]
async fn events_are_journaled_before_they_are_published() {
    let puppet = ManualUpstream::new("p");
    let journal = Arc::new(MemoryJournal::default());
    let engine = engine(journal.clone(), puppet.clone(), Settings::default());
    let (run, mut reader) = start(&engine, RunMode::Stream).await;
    let strings = puppet.attempt().await;
    strings.text(OPENING).await;
    let mut seen = 0;
    for word in ["a", "b", "c", "\"}}"] {
        strings.text(word).await;
        if word == "\"}}" {
            break;
        }
        let events = reader.next().await.unwrap().unwrap();
        for event in events {
            seen += 1;
            let entry = journal.read(&Tenant::local(), run, seen - 1, 1).await.unwrap();
            assert_eq!(entry[0].event, event);
        }
    }
    strings.finish().await;
    let last = timeout(SOON, reader.terminal_event()).await.unwrap().unwrap();
    assert_eq!(envelope(&last)["data"]["rationale"], "abc");
    let row = journal.find(&Tenant::local(), run).await.unwrap().unwrap();
    assert_eq!(row.state, RunState::Done);
}

#[tokio::test]
async fn disconnect_cancels_a_run_without_stream() {
    let puppet = ManualUpstream::new("p");
    let journal = Arc::new(MemoryJournal::default());
    let engine = engine(journal.clone(), puppet.clone(), Settings::default());
    let (run, caller) = start(&engine, RunMode::Sync).await;
    let strings = puppet.attempt().await;
    strings.text(OPENING).await;
    drop(caller);
    timeout(SOON, strings.dropped()).await.unwrap();
    engine.drain().await;
    let row = journal.find(&Tenant::local(), run).await.unwrap().unwrap();
    assert_eq!(row.finished.unwrap().code.as_deref(), Some("E2010"));
}

#[tokio::test]
async fn stream_continues_without_readers_for_the_grace_period() {
    let settings = Settings {
        resume_grace_ms: 60,
        ..Settings::default()
    };
    let puppet = ManualUpstream::new("p");
    let engine = engine(Arc::new(MemoryJournal::default()), puppet.clone(), settings);
    let (run, reader) = start(&engine, RunMode::Stream).await;
    let strings = puppet.attempt().await;
    strings.text(OPENING).await;
    drop(reader);
    strings.text("without readers").await;
    timeout(SOON, strings.dropped()).await.unwrap();
    let place = ResumePoint {
        seq: 0,
        checkpoint: None,
        strict: false,
    };
    let back = engine
        .subscribe(&Tenant::local(), run, ReadFrom::AfterChunk(place))
        .await
        .unwrap();
    let assembled = assemble(&rest(back).await);
    assert_eq!(assembled.envelope["error"]["code"], "E2010");
    assert_eq!(assembled.envelope["partial_data"]["rationale"], "without readers");
}

#[tokio::test]
async fn run_is_visible_only_to_its_tenant() {
    let puppet = ManualUpstream::new("p");
    let engine = engine(Arc::new(MemoryJournal::default()), puppet, Settings::default());
    let (run, _reader) = start(&engine, RunMode::Stream).await;
    let other = Tenant::new("other");
    let refused = engine.subscribe(&other, run, ReadFrom::Start).await;
    assert!(
        matches!(refused, Err(engine::Error::UnknownRun(_))),
        "{refused:?}"
    );
    assert_eq!(engine.find(&other, run).await.unwrap(), None);
}

#[tokio::test]
async fn cancel_ends_the_run_and_its_upstream_call() {
    let puppet = ManualUpstream::new("p");
    let engine = engine(
        Arc::new(MemoryJournal::default()),
        puppet.clone(),
        Settings::default(),
    );
    let (run, reader) = start(&engine, RunMode::Stream).await;
    let strings = puppet.attempt().await;
    let stranger = engine.cancel(&Tenant::new("other"), run).await;
    assert!(
        matches!(stranger, Err(engine::Error::UnknownRun(_))),
        "{stranger:?}"
    );
    engine.cancel(&Tenant::local(), run).await.unwrap();
    timeout(SOON, strings.dropped()).await.unwrap();
    assert_eq!(assemble(&rest(reader).await).envelope["error"]["code"], "E2010");
    engine.drain().await;
    engine.cancel(&Tenant::local(), run).await.unwrap();
}

#[tokio::test]
async fn run_of_another_server_is_neither_lost_nor_cancelled_here() {
    let journal = Arc::new(MemoryJournal::default());
    let puppet = ManualUpstream::new("p");
    let owner = engine(journal.clone(), puppet.clone(), Settings::default());
    let other = engine(journal, ManualUpstream::new("q"), Settings::default());
    let tenant = Tenant::local();
    let (run, mut reader) = start(&owner, RunMode::Stream).await;
    let strings = puppet.attempt().await;
    let mut events = timeout(SOON, reader.next()).await.unwrap().unwrap().unwrap();
    let refused = other.cancel(&tenant, run).await.unwrap_err();
    assert!(matches!(refused, engine::Error::NotOwned(_)), "{refused:?}");
    let mut elsewhere = other.subscribe(&tenant, run, ReadFrom::Start).await.unwrap();
    let opening = elsewhere.next().await.unwrap().unwrap();
    assert_eq!(opening[0].kind, EventKind::Meta);
    let refused = elsewhere.next().await.unwrap_err();
    assert!(matches!(refused, engine::Error::NotOwned(_)), "{refused:?}");
    assert!(refused.into_body().recoverable);
    strings.text(&format!("{OPENING}r\"}}}}")).await;
    strings.finish().await;
    events.extend(rest(reader).await);
    assert_eq!(assemble(&events).envelope["data"]["rationale"], "r");
    owner.drain().await;
    // The run has ended, so every server reads its end and has nothing to cancel.
    let ended = rest(elsewhere).await;
    assert!(ended.last().unwrap().kind.is_terminal(), "{ended:?}");
    other.cancel(&tenant, run).await.unwrap();
}

#[tokio::test]
async fn runs_above_the_limit_are_refused() {
    let settings = Settings {
        runs_max: 1,
        ..Settings::default()
    };
    let puppet = ManualUpstream::new("p");
    let engine = engine(Arc::new(MemoryJournal::default()), puppet, settings);
    let (_run, _reader) = start(&engine, RunMode::Stream).await;
    let second = engine.start(&Tenant::local(), execute(RunMode::Stream)).await;
    assert_eq!(second.unwrap_err().into_body().code, "E4002");
}

#[tokio::test]
async fn takeover_fences_the_previous_writer() {
    let journal = Arc::new(MemoryJournal::default());
    let (old, new) = (ManualUpstream::new("old"), ManualUpstream::new("new"));
    let first = engine(journal.clone(), old.clone(), Settings::default());
    let second = engine(journal.clone(), new.clone(), Settings::default());
    let (run, mut reader) = start(&first, RunMode::Stream).await;
    let before = old.attempt().await;
    before.text(OPENING).await;
    before.text("half a wo").await;
    let mut seen = Vec::new();
    while !seen
        .iter()
        .any(|event: &EncodedEvent| event.kind == EventKind::Chunk)
    {
        seen.extend(reader.next().await.unwrap().unwrap());
    }
    second.recover().await.unwrap();
    let after = new.attempt().await;
    before.text("rd of a fenced writer").await;
    timeout(SOON, before.dropped()).await.unwrap();
    assert_eq!(timeout(SOON, reader.next()).await.unwrap().unwrap(), None);
    let back = second
        .subscribe(&Tenant::local(), run, ReadFrom::Start)
        .await
        .unwrap();
    after.text(OPENING).await;
    after.text("a whole word\"}}").await;
    after.finish().await;
    assert_eq!(
        assemble(&rest(back).await).envelope["data"]["rationale"],
        "a whole word"
    );
}

#[tokio::test]
async fn shutdown_leaves_runs_for_recovery() {
    let journal = Arc::new(MemoryJournal::default());
    let puppet = ManualUpstream::new("p");
    let engine = engine(journal.clone(), puppet.clone(), Settings::default());
    let (run, reader) = start(&engine, RunMode::Stream).await;
    let strings = puppet.attempt().await;
    strings.text(OPENING).await;
    timeout(SOON, engine.stop()).await.unwrap();
    assert!(rest(reader).await.iter().all(|event| !event.kind.is_terminal()));
    let row = journal.find(&Tenant::local(), run).await.unwrap().unwrap();
    assert_eq!(row.state, RunState::Running);
}

#[tokio::test]
async fn journal_failure_gives_readers_one_error() {
    let journal = Arc::new(FaultyJournal::default());
    let puppet = ManualUpstream::new("p");
    let engine = engine(journal.clone(), puppet.clone(), Settings::default());
    let (run, reader) = start(&engine, RunMode::Stream).await;
    let strings = puppet.attempt().await;
    journal.full.store(true, Ordering::Relaxed);
    strings.text(OPENING).await;
    strings.text("never journaled").await;
    let events = rest(reader).await;
    let assembled = assemble(&events);
    // The end is not journaled yet, so readers get an error after which they can resume.
    let error = &assembled.envelope["error"];
    assert_eq!(
        (&error["code"], &error["recoverable"]),
        (&json!("E2010"), &json!(true))
    );
    assert!(error["recovery"]["retry_after_ms"].is_u64());
    assert!(!events.iter().any(|event| event.body.contains("never journaled")));
    let row = journal.find(&Tenant::local(), run).await.unwrap().unwrap();
    assert_eq!(row.state, RunState::Running);
    // When there is space again, the run is closed and its usage recorded.
    journal.full.store(false, Ordering::Relaxed);
    timeout(SOON, engine.drain()).await.unwrap();
    let row = journal.find(&Tenant::local(), run).await.unwrap().unwrap();
    assert_eq!(row.finished.unwrap().code.as_deref(), Some("E4000"));
    assert_eq!(
        journal
            .inner
            .attempt_usage(&Tenant::local(), run)
            .await
            .unwrap()
            .len(),
        1
    );
}

/// A journal that is full when the stream is opened may have space when the run gets its permit.
#[tokio::test]
async fn stream_opens_after_a_refused_first_append() {
    let (journal, puppet) = (Arc::new(FaultyJournal::default()), ManualUpstream::new("p"));
    let engine = engine(journal.clone(), puppet.clone(), Settings::default());
    let ((come, coming), (turn, turns)) = (oneshot::channel(), oneshot::channel::<()>());
    let queue = Queue::new(async move {
        come.send(()).unwrap();
        turns.await.unwrap();
        Ok(Permit::new(()))
    });
    let mut request = execute(RunMode::Stream);
    request.admission.queue = Some(queue);
    let started = engine.start(&Tenant::local(), request).await.unwrap();
    let reader = started.subscription;
    journal.full.store(true, Ordering::Relaxed);
    timeout(SOON, coming).await.unwrap().unwrap();
    journal.full.store(false, Ordering::Relaxed);
    turn.send(()).unwrap();
    let strings = puppet.attempt().await;
    strings.text(&format!("{OPENING}r\"}}}}")).await;
    strings.finish().await;
    let events = rest(reader).await;
    let opened = events
        .iter()
        .filter(|event| event.kind == EventKind::Meta)
        .count();
    assert_eq!((events[0].kind, opened), (EventKind::Meta, 1), "{events:?}");
    assert_eq!(assemble(&events).envelope["data"]["rationale"], "r");
}

/// The first server was killed before the first chunk was written: the next one opens the stream.
#[tokio::test]
async fn recovery_opens_an_unopened_stream() {
    let (journal, puppet) = (Arc::new(MemoryJournal::default()), ManualUpstream::new("p"));
    let lost = Arc::new(MemoryJournal::default());
    let first = engine(lost.clone(), ManualUpstream::new("gone"), Settings::default());
    let tenant = Tenant::local();
    let (run, _reader) = start(&first, RunMode::Stream).await;
    let started = lost.find(&tenant, run).await.unwrap().unwrap();
    timeout(SOON, first.stop()).await.unwrap();
    // The server was killed before it appended the first event.
    let new = NewRun {
        id: run,
        kind: started.kind,
        command: started.command,
        created_at_ms: started.created_at_ms,
        client: started.client,
        once: None,
    };
    journal.create(&tenant, &new).await.unwrap();
    let row = journal.find(&tenant, run).await.unwrap().unwrap();
    assert_eq!((row.state, row.last_offset), (RunState::Running, 0));
    let second = engine(journal.clone(), puppet.clone(), Settings::default());
    second.recover().await.unwrap();
    let reader = second.subscribe(&tenant, run, ReadFrom::Start).await.unwrap();
    let strings = puppet.attempt().await;
    strings.text(&format!("{OPENING}r\"}}}}")).await;
    strings.finish().await;
    let events = rest(reader).await;
    assert_eq!(events[0].kind, EventKind::Meta, "{events:?}");
    assert_eq!(assemble(&events).envelope["data"]["rationale"], "r");
}

#[tokio::test]
async fn no_upstream_request_without_a_journal_record() {
    let puppet = ManualUpstream::new("p");
    let journal = Arc::new(FaultyJournal::default());
    let engine = engine(journal.clone(), puppet.clone(), Settings::default());
    for mode in [RunMode::Sync, RunMode::Stream] {
        journal.full.store(true, Ordering::Relaxed);
        let refused = engine.start(&Tenant::local(), execute(mode)).await.unwrap_err();
        assert_eq!(refused.into_body().code, "E4000", "{mode:?}");
        timeout(SOON, engine.drain()).await.unwrap();
    }
    assert!(puppet.attempt().now_or_never().is_none());
}

/// A request id is used as an idempotency key: it is unique, and a run can be found by it.
#[tokio::test]
async fn request_ids_are_unique() {
    let puppet = ManualUpstream::new("p");
    let engine = engine(
        Arc::new(MemoryJournal::default()),
        puppet.clone(),
        Settings::default(),
    );
    let (first, _first_reader) = start(&engine, RunMode::Stream).await;
    let (second, _second_reader) = start(&engine, RunMode::Stream).await;
    let mut ids = vec![
        puppet.attempt().await.request.request_id.clone(),
        puppet.attempt().await.request.request_id.clone(),
    ];
    ids.sort();
    let mut runs = vec![first.to_string(), second.to_string()];
    runs.sort();
    assert_eq!(ids, runs);
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test]
async fn every_run_requests_a_stream() {
    let puppet = ManualUpstream::new("p");
    let engine = engine(
        Arc::new(MemoryJournal::default()),
        puppet.clone(),
        Settings::default(),
    );
    for mode in [RunMode::Sync, RunMode::Stream] {
        for timeout_ms in [None, Some(1_000)] {
            let mut execute = execute(mode);
            execute.options.timeout_ms = timeout_ms;
            let _started = engine.start(&Tenant::local(), execute).await.unwrap();
            let asked = puppet.attempt().await.request;
            assert!(asked.as_chat().unwrap().streams(), "{mode:?} {timeout_ms:?}");
        }
    }
}
