//! All queued spans are sent without unnecessary delay; dropped runs are counted and logged at an interval.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::http::{MockServer, ScriptedResponse};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::dropped::{DroppedCounts, DroppedTraces, TELL_EVERY};
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

/// The run numbers of each message, in the order they were sent.
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
async fn sends_queued_traces_on_shutdown() {
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
async fn sends_full_batch_without_delay() {
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
    // Waiting `GATHER` before each message would take longer than this.
    assert!(began.elapsed() < GATHER * 8, "{:?}", began.elapsed());
    assert!(collected(&collector).iter().all(|runs| runs.len() == BATCH_MAX));
    // Runs that do not fill a message are sent together.
    (0..3).for_each(|number| tell(spans(number)));
    while collected(&collector).len() == messages {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(collected(&collector).last(), Some(&vec![0, 1, 2]));
    stop.cancel();
    tokio::time::timeout(PATIENCE, work).await.unwrap().unwrap();
}

#[tokio::test]
async fn shutdown_is_bounded_when_collector_does_not_respond() {
    let collector = MockServer::with_responses(ScriptedResponse::nothing().pause(PATIENCE));
    let (exporter, tell) = exporter(&collector);
    (0..QUEUE_MAX).for_each(|number| tell(spans(number)));
    let stop = CancellationToken::new();
    stop.cancel();
    let half = PATIENCE / 2;
    tokio::time::timeout(half, exporter.work(stop)).await.unwrap();
}

#[tokio::test]
async fn counts_traces_dropped_by_full_queue() {
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
fn rate_limits_loss_log_without_losing_counts() {
    let mut losses = DroppedTraces::default();
    let began = Instant::now();
    let mut logged = Vec::new();
    // Ten per second for one minute.
    for tenth in 0..600u32 {
        losses.no_room.add(1);
        losses.left(1);
        logged.extend(losses.due(began + Duration::from_millis(100) * tenth));
    }
    assert_eq!(logged.len(), 6);
    logged.extend(losses.due(began + Duration::from_secs(60) + TELL_EVERY));
    assert_eq!(logged.iter().map(|lost| lost.no_room).sum::<u64>(), 600);
    assert_eq!(logged.iter().map(|lost| lost.left).sum::<u64>(), 600);
    assert_eq!(
        losses.due(began + Duration::from_secs(600)),
        None,
        "nothing was lost"
    );
}
