//! Everything that is told is sent, as fast as a collector takes it; what is lost is told once in a while.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::http::{ScriptedResponse, MockServer};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::dropped::{DroppedTraces, DroppedCounts, TELL_EVERY};
use super::{BATCH_MAX, Exporter, GATHER, QUEUE_MAX};

const PATIENCE: Duration = Duration::from_secs(60);

fn collector() -> MockServer {
    MockServer::with_responses(ScriptedResponse::good("application/json", "{}"))
}

fn exporter(collector: &MockServer) -> (Exporter, impl Fn(Vec<Value>) + use<>) {
    let endpoint = collector.url("/v1/traces");
    Exporter::to(endpoint, None, String::from("cogn")).unwrap()
}

fn spans(number: usize) -> Vec<Value> {
    vec![json!({"number": number}), json!({"attempt": 1})]
}

/// The runs of each message, as they were sent.
fn collected(collector: &MockServer) -> Vec<Vec<u64>> {
    let messages = collector.received();
    let numbers = messages.iter().map(|message| {
        let message = message.json();
        let spans = message["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array();
        let numbers = spans.unwrap().iter().filter_map(|span| span["number"].as_u64());
        numbers.collect()
    });
    numbers.collect()
}

#[tokio::test]
async fn all_that_waits_is_sent_when_the_server_stops() {
    let collector = collector();
    let (exporter, tell) = exporter(&collector);
    (0..QUEUE_MAX).for_each(|number| tell(spans(number)));
    let stop = CancellationToken::new();
    stop.cancel();
    tokio::time::timeout(PATIENCE, exporter.work(stop)).await.unwrap();
    let runs = collected(&collector).concat();
    assert!(
        runs.iter().copied().eq(0..QUEUE_MAX as u64),
        "{} runs",
        runs.len()
    );
}

#[tokio::test]
async fn a_full_message_does_not_wait() {
    let collector = collector();
    let (exporter, tell) = exporter(&collector);
    let stop = CancellationToken::new();
    let began = Instant::now();
    let work = TaskTracker::new().spawn(exporter.work(stop.clone()));
    (0..QUEUE_MAX).for_each(|number| tell(spans(number)));
    let messages = QUEUE_MAX / BATCH_MAX;
    while collected(&collector).len() < messages {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // A pause before each of them would take longer than this.
    assert!(began.elapsed() < GATHER * 8, "{:?}", began.elapsed());
    assert!(collected(&collector).iter().all(|runs| runs.len() == BATCH_MAX));
    // What fills no message is sent all the same, together.
    (0..3).for_each(|number| tell(spans(number)));
    while collected(&collector).len() == messages {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(collected(&collector).last(), Some(&vec![0, 1, 2]));
    stop.cancel();
    tokio::time::timeout(PATIENCE, work).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_collector_that_takes_nothing_holds_up_no_stop_for_ever() {
    let collector = MockServer::with_responses(ScriptedResponse::nothing().pause(PATIENCE));
    let (exporter, tell) = exporter(&collector);
    (0..QUEUE_MAX).for_each(|number| tell(spans(number)));
    let stop = CancellationToken::new();
    stop.cancel();
    let half = PATIENCE / 2;
    tokio::time::timeout(half, exporter.work(stop)).await.unwrap();
}

#[tokio::test]
async fn what_found_no_room_is_counted() {
    let (exporter, tell) = exporter(&collector());
    (0..QUEUE_MAX + 100).for_each(|number| tell(spans(number)));
    let mut losses = exporter.losses;
    let expected = DroppedCounts {
        no_room: 100,
        ..DroppedCounts::default()
    };
    assert_eq!(losses.due(Instant::now()), Some(expected));
}

#[test]
fn losses_are_told_once_in_a_while_and_none_is_forgotten() {
    let mut losses = DroppedTraces::default();
    let began = Instant::now();
    let mut told = Vec::new();
    // Ten of them in each second of a minute.
    for tenth in 0..600u32 {
        losses.no_room.add(1);
        losses.left(1);
        told.extend(losses.due(began + Duration::from_millis(100) * tenth));
    }
    assert_eq!(told.len(), 6);
    told.extend(losses.due(began + Duration::from_secs(60) + TELL_EVERY));
    assert_eq!(told.iter().map(|lost| lost.no_room).sum::<u64>(), 600);
    assert_eq!(told.iter().map(|lost| lost.left).sum::<u64>(), 600);
    assert_eq!(
        losses.due(began + Duration::from_secs(600)),
        None,
        "nothing was lost"
    );
}
