use std::time::Instant;

use futures::StreamExt;
use ir::{ErrorKind, Event};
use local::LocalUpstream;
use serde_json::json;

use crate::harness::{ask, block_on, chat, held_to, open, options};

#[test]
fn full_queue_refuses_calls() {
    let mut options = options();
    options.queue_max = 2;
    let local = LocalUpstream::new(&options);
    let mut long = chat("Tell me a very long story.");
    long.generation.max_tokens = Some(1500);
    let mut first = open(&local, long);
    // The first call is running, not queued.
    let begun = block_on(first.next());
    assert!(matches!(begun, Some(Event::Started { .. })), "{begun:?}");
    let waiting = [open(&local, chat("one")), open(&local, chat("two"))];
    let refused: Vec<Event> = block_on(open(&local, chat("three")).collect());
    let [Event::Error { error }] = refused.as_slice() else {
        panic!("{refused:?}");
    };
    assert_eq!(
        (error.kind, error.cognitive_code()),
        (ErrorKind::RateLimited, "E4002")
    );
    assert!(error.retry_after_ms.is_some());
    // After the long call is cancelled, the queued calls are answered.
    drop(first);
    for events in waiting {
        let events: Vec<Event> = block_on(events.collect());
        assert!(matches!(events.last(), Some(Event::Finish { .. })), "{events:?}");
    }
}

/// Eight cancelled calls take less than half the time of eight complete ones. Both are measured here, so
/// that a busy machine slows both.
#[test]
fn dropped_stream_frees_the_model() {
    let mut options = options();
    options.context_tokens = 400;
    let local = LocalUpstream::new(&options);
    let mut endless = held_to(chat("Write all numbers."), json!({"type": "string"}));
    endless.generation.max_tokens = None;
    assert!(ask(&local, chat("hello")).error.is_none(), "loaded");
    let started = Instant::now();
    assert!(ask(&local, endless.clone()).error.is_none());
    let whole = started.elapsed();
    let started = Instant::now();
    for _ in 0..8 {
        let mut events = open(&local, endless.clone());
        let begun = block_on(events.next());
        assert!(matches!(begun, Some(Event::Started { .. })), "{begun:?}");
        drop(events);
    }
    // The next call starts after all cancelled calls.
    assert!(block_on(open(&local, chat("hello")).next()).is_some());
    assert!(
        started.elapsed() < whole * 4,
        "{:?} against {whole:?}",
        started.elapsed()
    );
}

#[test]
fn running_call_completes_after_backend_is_dropped() {
    let mut options = options();
    options.context_tokens = 300;
    let local = LocalUpstream::new(&options);
    let mut events = open(&local, chat("Tell me a story."));
    assert!(block_on(events.next()).is_some());
    // The back-end is dropped first; the running call continues.
    drop(local);
    let rest: Vec<Event> = block_on(events.collect());
    assert!(matches!(rest.last(), Some(Event::Finish { .. })), "{rest:?}");
}
