//! Relayed calls during shutdown: they have the drain time of runs, and each is counted once.

use std::time::Duration;

use engine::Tenant;
use engine::port::{Archive, Journal, RunFilter, UsageFilter};
use futures::StreamExt;
use ir::Dialect;
use serde_json::{Value, json};
use store::sqlite::SqliteJournal;
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

use crate::harness::{Server, Stage};
use crate::vendor_client::{DIALECTS, is_ended, path, question, read};

/// Takes longer than idle connections may take to close during shutdown.
const LONG: &str = "one two three four five six";

/// A script that sends [`LONG`] in this time.
fn talker(stage: &Stage, took: Duration) -> String {
    let pieces = LONG.len().div_ceil(3);
    let delay_ms = took.as_millis() / pieces as u128;
    let exchange = json!([{"reply": LONG, "chunk_bytes": 3, "delay_ms": u64::try_from(delay_ms).unwrap()}]);
    stage.script("slow", &exchange)
}

/// Waits until this many calls are running.
async fn until_running(server: &Server, count: usize) {
    let line = format!("cogn_runs_running {count}\n");
    let asking = async {
        loop {
            let figures = server.get("/metrics").send().await.unwrap().text().await.unwrap();
            if figures.contains(&line) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), asking)
        .await
        .unwrap();
}

/// Number of calls in the usage of a closed journal, and number of unfinished calls.
async fn accounts(stage: &Stage) -> (u64, usize) {
    let journal = SqliteJournal::open(&stage.path("journal.db")).await.unwrap();
    let lines = journal.usage(None, &UsageFilter::default()).await.unwrap();
    let unfinished = journal.unfinished().await.unwrap().len();
    journal.close().await;
    (lines.iter().map(|line| line.runs).sum(), unfinished)
}

#[tokio::test]
async fn calls_complete_within_drain_time() {
    let stage = Stage::new();
    stage.configure("[server]\ndrain_ms = 60000\n");
    let server = stage.serve(&[&talker(&stage, Duration::from_secs(4))]);
    let mut calls = JoinSet::new();
    for dialect in DIALECTS {
        for streams in [true, false] {
            let mut body = question(dialect, "m", "hi");
            body["stream"] = json!(streams);
            let asking = server.post(path(dialect)).body(body.to_string()).send();
            calls.spawn(async move { read(dialect, asking.await.unwrap()).await.text() });
        }
    }
    let canonical = json!({
        "version": 1, "request_id": "r", "operation": "chat_completions",
        "payload": {"model": "m", "messages": [{"role": "user", "content": "hi"}], "generation": {"stream": true}}
    });
    let canonical = server.post("/v1/canonical").body(canonical.to_string());
    let canonical = canonical.header("accept", "application/x-ndjson").send();
    calls.spawn(async move {
        let text = canonical.await.unwrap().text().await.unwrap();
        let events = text.lines().filter(|line| !line.is_empty());
        let events: Vec<Value> = events.map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(events.last().unwrap()["type"], "finish", "{text}");
        let words = events.iter().filter_map(|event| event["delta"]["text"].as_str());
        words.collect()
    });
    let count = calls.len();
    until_running(&server, count).await;
    let stopping = tokio::task::spawn_blocking(move || server.terminate());
    while let Some(outcome) = calls.join_next().await {
        assert_eq!(outcome.unwrap(), LONG);
    }
    assert_eq!(stopping.await.unwrap(), Some(0));
    assert_eq!(accounts(&stage).await, (count as u64, 0));
}

/// A reask starts when its first attempt has ended, so for a moment no attempt is in flight.
#[tokio::test]
async fn reask_completes_within_drain_time() {
    let stage = Stage::new();
    stage.configure("[server]\ndrain_ms = 60000\n");
    let script = stage.script(
        "counts",
        &json!([
            {"match": "does not fit the JSON Schema", "reply": "{\"n\": 3}", "chunk_bytes": 2, "delay_ms": 1_000},
            {"reply": "{\"n\": \"three\"}", "chunk_bytes": 100, "delay_ms": 500}
        ]),
    );
    let server = stage.serve(&[&script]);
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    let mut body = question(Dialect::OpenaiChat, "m", "count");
    body["response_format"] =
        json!({"type": "json_schema", "json_schema": {"name": "count", "schema": schema}});
    body["cogn"] = json!({"validate": "repair"});
    let request = server.post(path(Dialect::OpenaiChat)).body(body.to_string());
    let asking = TaskTracker::new().spawn(request.send());
    until_running(&server, 1).await;
    let stopping = tokio::task::spawn_blocking(move || server.terminate());
    let answer = read(Dialect::OpenaiChat, asking.await.unwrap().unwrap()).await;
    assert_eq!(answer.text(), "{\"n\": 3}");
    assert_eq!(stopping.await.unwrap(), Some(0));
    assert_eq!(accounts(&stage).await, (2, 0));
}

#[tokio::test]
async fn call_over_drain_time_is_cancelled_and_counted_once() {
    for http2 in [false, true] {
        let stage = Stage::new();
        stage.configure("[server]\ndrain_ms = 100\n");
        let slow = talker(&stage, Duration::from_secs(600));
        let server = stage.serve(&[&slow]);
        let client = reqwest::Client::builder();
        let client = if http2 {
            client.http2_prior_knowledge()
        } else {
            client
        };
        let mut body = question(Dialect::OpenaiChat, "m", "hi");
        body["stream"] = json!(true);
        let url = format!("{}{}", server.url, path(Dialect::OpenaiChat));
        let request = client.build().unwrap().post(url).body(body.to_string());
        let asking = TaskTracker::new().spawn(async move {
            let response = request.send().await?;
            let mut bytes = response.bytes_stream();
            let mut text = Vec::new();
            while let Some(piece) = bytes.next().await {
                text.extend_from_slice(&piece?);
            }
            Ok::<_, reqwest::Error>(String::from_utf8(text).unwrap())
        });
        until_running(&server, 1).await;
        let stopping = tokio::task::spawn_blocking(move || server.terminate());
        let code = tokio::time::timeout(Duration::from_secs(60), stopping).await;
        assert_eq!(code.unwrap().unwrap(), Some(0));
        let outcome = asking.await.unwrap();
        assert!(outcome.is_err() || outcome.is_ok_and(|text| !is_ended(&text)));
        // The call is closed by the stopped server; the next server does not count it again.
        assert_eq!(accounts(&stage).await, (1, 0), "http2: {http2}");
        let next = stage.serve(&[&slow]);
        until_running(&next, 0).await;
        assert_eq!(next.terminate(), Some(0));
        assert_eq!(accounts(&stage).await, (1, 0), "http2: {http2}");
        let journal = SqliteJournal::open(&stage.path("journal.db")).await.unwrap();
        let tenant = Tenant::local();
        let filter = RunFilter {
            state: None,
            before: None,
            limit: 10,
        };
        let runs = journal.list(&tenant, &filter).await.unwrap();
        let spent = journal.attempt_usage(&tenant, runs[0].id).await.unwrap();
        assert_eq!((spent.len(), spent[0].outcome.as_str()), (1, "cancelled"));
    }
}
