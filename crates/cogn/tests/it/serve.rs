//! `cogn serve`: streams survive a client disconnect, a back-end failure and a restart of the server.

use std::time::Duration;

use engine::port::Journal;
use futures::StreamExt;
use module::envelope::{Profile, check_structure};
use serde_json::{Value, json};
use store::sqlite::SqliteJournal;
use testkit::http::{MockServer, ScriptedResponse};

use crate::harness::{REPLY, Server, Stage, assemble, chunks, data, input};

async fn stream(request: reqwest::RequestBuilder, accept: &str) -> String {
    let response = request.header("accept", accept).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let content_type = response.headers()["content-type"].to_str().unwrap();
    assert_eq!(content_type, accept);
    response.text().await.unwrap()
}

async fn body_of(response: reqwest::Response) -> Value {
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}

async fn json_of(request: reqwest::RequestBuilder) -> Value {
    body_of(request.send().await.unwrap()).await
}

pub(crate) async fn sse(request: reqwest::RequestBuilder) -> String {
    stream(request, "text/event-stream").await
}

/// Reads until `count` chunks are received, then disconnects.
pub(crate) async fn sse_until(request: reqwest::RequestBuilder, count: usize) -> String {
    let response = request
        .header("accept", "text/event-stream")
        .send()
        .await
        .unwrap();
    let mut pieces = response.bytes_stream();
    let mut text = Vec::new();
    loop {
        let so_far = String::from_utf8_lossy(&text).into_owned();
        // Complete events only: a truncated event does not count as received.
        let unstreamed = so_far.rfind("\n\n").map_or("", |end| so_far.split_at(end + 2).0);
        if unstreamed.contains("event: meta") && chunks(unstreamed).len() >= count {
            let mut kept = String::new();
            for event in unstreamed.split_inclusive("\n\n") {
                if chunks(&kept).len() == count && event.starts_with("event: chunk") {
                    break;
                }
                kept.push_str(event);
            }
            return kept;
        }
        text.extend_from_slice(&pieces.next().await.expect("more of the stream").unwrap());
    }
}

pub(crate) fn session(stream: &str) -> String {
    let marker = r#""session_id":""#;
    let at = stream.find(marker).expect("a session") + marker.len();
    stream
        .get(at..)
        .unwrap()
        .split('"')
        .next()
        .map(String::from)
        .unwrap()
}

#[tokio::test]
async fn one_answer_in_three_forms() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let response = server.execute("counter", &input()).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.headers().contains_key("x-cognitive-session"));
    let unstreamed = body_of(response).await;
    assert_eq!(unstreamed["data"], data());

    let events = sse(server.execute("counter", &input())).await;
    let lines = stream(server.execute("counter", &input()), "application/x-ndjson").await;
    assert_eq!(chunks(&events), chunks(&lines));
    for text in [&events, &lines] {
        assert_eq!(assemble(text).envelope["data"], data());
    }
    let names: Vec<&str> = events
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect();
    assert_eq!(names.first(), Some(&"meta"));
    assert_eq!(names.last(), Some(&"final"));
    let ids: Vec<usize> = events
        .lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .map(|id| id.parse().unwrap())
        .collect();
    assert!(ids.iter().copied().eq(1..=chunks(&events).len()), "{events}");
    for block in events.split("\n\n").filter(|block| block.contains("id: ")) {
        assert!(block.starts_with("event: chunk\n"), "{block}");
    }
}

#[tokio::test]
async fn disconnected_client_resumes_at_any_event_over_every_transport() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(1)]);
    let uninterrupted = sse(server.execute("counter", &input())).await;
    let expected = chunks(&uninterrupted);
    assert!(expected.len() > 8, "{uninterrupted}");
    for count in 0..=expected.len() {
        let before = sse_until(server.execute("counter", &input()), count).await;
        let session = session(&before);
        let seq = count.to_string();
        let events = server.get(&format!("/v1/runs/{session}/events"));
        let by_event_id = sse(events.header("last-event-id", &seq)).await;
        let headers = server.execute("counter", &input());
        let headers = headers.header("x-cognitive-recovery-session", &session);
        let by_headers = sse(headers.header("x-cognitive-recovery-seq", &seq)).await;
        let mut recovery = json!({"session_id": session, "last_seq": count});
        if let Some(last) = chunks(&before).last() {
            let last: Value = serde_json::from_str(last).unwrap();
            if let Some(checkpoint) = last["chunk"].get("checkpoint") {
                recovery["last_checkpoint"] = checkpoint.clone();
            }
        }
        let body = json!({"input": input(), "_recovery": recovery});
        let by_body = sse(server.execute("counter", &body)).await;
        for after in [by_event_id, by_headers, by_body] {
            assert!(after.contains(&format!(r#""resumed":true,"resume_from_seq":{}"#, count + 1)));
            let both = format!("{before}{after}");
            assert_eq!(chunks(&both), expected, "dropped after {count}");
            assert_eq!(assemble(&both).envelope["data"], data());
        }
    }
}

#[tokio::test]
async fn invalid_resume_point_replays_and_unknown_session_restarts() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let first = sse(server.execute("counter", &input())).await;
    let session_id = session(&first);
    let ask = |recovery: Value, strict: bool| {
        let body = json!({"input": input(), "_recovery": recovery, "_options": {"strict": strict}});
        let request = server.execute("counter", &body);
        request.header("accept", "text/event-stream")
    };
    let wrong_hash =
        json!({"session_id": session_id, "last_seq": 2, "last_checkpoint": {"offset": 1, "hash": "000000"}});
    let too_far = json!({"session_id": session_id, "last_seq": 999});
    let beyond = json!({"session_id": session_id, "last_seq": u64::MAX});
    for recovery in [wrong_hash, too_far, beyond] {
        let text = ask(recovery.clone(), false)
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        assert!(
            text.contains("W4014") && text.contains(r#""resume_from_seq":1,"#),
            "{text}"
        );
        assert_eq!(session(&text), session_id);
        assert_eq!(chunks(&text), chunks(&first));
        let refused = ask(recovery, true).send().await.unwrap();
        assert_eq!(refused.status(), 409);
        assert_eq!(body_of(refused).await["error"]["code"], "E4014");
    }
    for lost in ["sess_01M7GGVEPQ2AM92NJEJG1CTA1Y", "no session at all"] {
        let recovery = json!({"session_id": lost, "last_seq": 3});
        let text = ask(recovery.clone(), false)
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        assert!(text.contains("W4013"), "{text}");
        assert_ne!(session(&text), lost);
        assert_eq!(assemble(&text).envelope["data"], data());
        assert_eq!(ask(recovery, true).send().await.unwrap().status(), 410);
    }
}

#[tokio::test]
async fn finished_runs_survive_kill() {
    let stage = Stage::new();
    let talker = stage.talker(0);
    let server = stage.serve(&[&talker]);
    let before = sse(server.execute("counter", &input())).await;
    server.kill();

    let server = stage.serve(&[&talker]);
    let path = format!("/v1/runs/{}", session(&before));
    assert_eq!(sse(server.get(&format!("{path}/events"))).await, before);
    let row = json_of(server.get(&path)).await;
    assert_eq!(row["data"]["state"], "done");
}

/// The events of a run that was interrupted by `kill -9` after a few chunks: those before the kill, and those
/// of the next server.
async fn interrupted(stage: &Stage, module: &str) -> (String, String, Server) {
    let slow = stage.talker(20);
    let server = stage.serve(&[&slow]);
    let before = sse_until(server.execute(module, &input()), 4).await;
    server.kill();
    let server = stage.serve(&[&stage.talker(0)]);
    let events = server.get(&format!("/v1/runs/{}/events", session(&before)));
    let after = sse(events.header("last-event-id", "4")).await;
    (before, after, server)
}

#[tokio::test]
async fn unfinished_run_without_side_effects_is_rerun() {
    let stage = Stage::new();
    let (before, after, server) = interrupted(&stage, "counter").await;
    let both = format!("{before}{after}");
    assert!(
        after.contains(r#""type":"snapshot","field":"data","data":{}"#),
        "{after}"
    );
    assert_eq!(assemble(&both).envelope["data"], data());
    let row = server.get(&format!("/v1/runs/{}", session(&before)));
    let row = json_of(row).await;
    assert_eq!(row["data"]["state"], "done");
}

#[tokio::test]
async fn unfinished_run_with_side_effects_is_closed() {
    let stage = Stage::new();
    let (before, after, _server) = interrupted(&stage, "actor").await;
    let envelope = assemble(&format!("{before}{after}")).envelope;
    assert_eq!(envelope["error"]["code"], "E2010");
    assert!(envelope["partial_data"]["rationale"].is_string(), "{envelope}");
}

#[tokio::test]
async fn backend_cut_at_any_byte_leaves_data_unchanged() {
    let stage = Stage::new();
    let cuts: Vec<Value> = (0..REPLY.len())
        .map(|cut| json!({"reply": REPLY, "chunk_bytes": 7, "cut_after_bytes": cut, "times": 1}))
        .collect();
    let dying = stage.script("dying", &Value::Array(cuts));
    let server = stage.serve(&[&dying, &stage.talker(0)]);
    for cut in 0..REPLY.len() {
        let text = stream(server.execute("counter", &input()), "application/x-ndjson").await;
        let assembled = assemble(&text);
        assert_eq!(assembled.envelope["data"], data(), "cut at {cut}: {text}");
        assert_eq!(assembled.envelope["meta"]["model"], "scripted/talker0");
    }
    let text = stream(server.execute("counter", &input()), "application/x-ndjson").await;
    assert_eq!(assemble(&text).envelope["data"], data());
}

#[tokio::test]
async fn non_streaming_module_returns_whole_answer_with_note() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let request = |body: &Value| {
        server
            .execute("waiter", body)
            .header("accept", "text/event-stream")
    };
    let response = request(&input()).send().await.unwrap();
    let header = response.headers()["x-cognitive-warning"].to_str().unwrap();
    assert!(
        header.starts_with("STREAMING_UNAVAILABLE; fallback=sync"),
        "{header}"
    );
    let envelope = body_of(response).await;
    assert_eq!(envelope["_warnings"][0]["code"], "W4010");
    assert_eq!(envelope["data"], data());
    let strict = json!({"input": input(), "_options": {"strict": true}});
    assert_eq!(request(&strict).send().await.unwrap().status(), 406);
}

#[tokio::test]
async fn every_body_is_an_envelope_with_the_status_of_its_code() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let post = |body: &'static str| server.execute_raw("counter").body(body);
    let large = server.execute_raw("counter").body(vec![b' '; 17 * 1024 * 1024]);
    for (request, status, code) in [
        (server.get("/healthz"), 200, ""),
        (server.get("/v1/modules"), 200, ""),
        (server.get("/v1/modules/counter"), 200, ""),
        (server.get("/v1/modules/no-such-module"), 404, "E4006"),
        (server.execute("no-such-module", &input()), 404, "E4006"),
        (server.get("/v2/modules"), 404, "E4008"),
        (server.get("/v1/modules/counter/execute"), 405, "E4008"),
        (
            server.get("/v1/runs/sess_01M7GGVEPQ2AM92NJEJG1CTA1Y"),
            404,
            "E4009",
        ),
        (server.get("/v1/runs/x/events"), 404, "E4009"),
        (post("{\"text\": "), 400, "E1000"),
        (post("{}"), 400, "E1002"),
        (post("{\"text\": 7}"), 400, "E1003"),
        (post("[]"), 400, "E1001"),
        (large, 413, "E1005"),
    ] {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), status, "{code}");
        let envelope = body_of(response).await;
        assert_eq!(envelope["error"]["code"].as_str().unwrap_or_default(), code);
        let violations = check_structure(&envelope, Profile::Cognitive);
        assert!(violations.is_empty(), "{violations:?}: {envelope}");
    }
}

#[tokio::test]
async fn rate_limited_response_has_retry_after() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.script("busy", &json!([{"status": 429}]))]);
    let response = server.execute("counter", &input()).send().await.unwrap();
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["retry-after"], "1");
    let error = &body_of(response).await["error"];
    assert_eq!(
        (
            &error["code"],
            &error["recoverable"],
            &error["details"]["retry_after_ms"]
        ),
        (&json!("E4002"), &json!(true), &json!(1_000))
    );
    let nowhere = json_of(server.get("/v2/modules")).await;
    assert_eq!(
        nowhere["error"]["details"],
        json!({"method": "GET", "path": "/v2/modules"})
    );
}

#[tokio::test]
async fn run_can_be_cancelled() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(200)]);
    let before = sse_until(server.execute("counter", &input()), 0).await;
    let path = format!("/v1/runs/{}", session(&before));
    let asked = server.post(&format!("{path}/cancel")).send().await.unwrap();
    assert_eq!(asked.status(), 200);
    let rest = server.get(&format!("{path}/events")).header("last-event-id", "0");
    let both = format!("{before}{}", sse(rest).await);
    assert_eq!(assemble(&both).envelope["error"]["code"], "E2010");
}

#[tokio::test]
async fn idle_stream_sends_heartbeats() {
    let stage = Stage::new();
    let slow = stage.script(
        "slow",
        &json!([{"reply": REPLY, "chunk_bytes": 100, "delay_ms": 100}]),
    );
    stage.module("silent", "deny", "both, heartbeat_interval_ms: 0");
    let server = stage.serve(&[&slow]);
    let events = sse(server.execute("ticker", &input())).await;
    assert!(events.contains("\n\n: hb\n\n"), "{events}");
    let silent = sse(server.execute("silent", &input())).await;
    assert!(!silent.contains(": hb"), "{silent}");
    let lines = stream(server.execute("ticker", &input()), "application/x-ndjson").await;
    assert!(lines.contains("\n\n"), "{lines}");
    for text in [events, lines] {
        assert_eq!(assemble(&text).envelope["data"], data());
    }
}

#[tokio::test]
async fn disconnect_before_unstreamed_answer_cancels_run() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(500)]);
    let call = server.execute("counter", &input()).send();
    let gone = tokio::time::timeout(Duration::from_millis(300), call).await;
    assert!(gone.is_err(), "the answer came too early");
    let journal = SqliteJournal::open(&stage.path("journal.db")).await.unwrap();
    let ended = async {
        while !journal.unfinished().await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    // The complete answer would take more than ten seconds.
    tokio::time::timeout(Duration::from_secs(5), ended).await.unwrap();
}

#[tokio::test]
async fn shutdown_ends_streams_and_process() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(10)]);
    let request = server.execute("counter", &input());
    let response = request
        .header("accept", "text/event-stream")
        .send()
        .await
        .unwrap();
    let mut pieces = response.bytes_stream();
    let mut text = pieces.next().await.unwrap().unwrap().to_vec();
    let reading = async {
        while let Some(piece) = pieces.next().await {
            text.extend_from_slice(&piece.unwrap());
        }
        String::from_utf8(text).unwrap()
    };
    let stopping = tokio::task::spawn_blocking(move || server.terminate());
    let (text, code) = tokio::join!(reading, stopping);
    assert_eq!(code.unwrap(), Some(0));
    assert_eq!(assemble(&text).envelope["data"], data());
}

/// A run that ends its server each time is started three times in all, and then ends with an error.
#[tokio::test]
async fn run_is_closed_after_two_recoveries() {
    let stage = Stage::new();
    let upstream = MockServer::with_responses(ScriptedResponse::nothing().pause(Duration::from_secs(600)));
    let config = format!(
        "[[backends]]\nname = \"b\"\nkind = \"openai\"\nmodel = \"m\"\nbase_url = \"{}/v1\"\n",
        upstream.url("")
    );
    let config = stage.config(&config);
    let serve = || stage.serve_with(&["--config", &config], &[]);
    let server = serve();
    let mut stream = server
        .execute("counter", &input())
        .header("accept", "text/event-stream");
    stream = stream.header("x-cognitive-response-mode", "streaming");
    let response = stream.send().await.unwrap();
    let session = String::from(response.headers()["x-cognitive-session"].to_str().unwrap());
    let mut server = Some(server);
    for calls in 1..=3 {
        while upstream.received().len() < calls {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        server.take().unwrap().kill();
        server = Some(serve());
    }
    let server = server.unwrap();
    let row = json_of(server.get(&format!("/v1/runs/{session}"))).await;
    assert_eq!(row["data"]["state"], "failed", "{row}");
    assert_eq!(row["data"]["code"], "E2010", "{row}");
    assert_eq!(upstream.received().len(), 3);
}
