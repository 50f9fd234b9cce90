//! Stored runs of a server: idempotency, listing, review, usage accounting, pruning.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use engine::Tenant;
use engine::port::{EncodedEvent, EventKind, Journal, NewRun, RunEnd, RunKind};
use ir::RunId;
use serde_json::{Value, json};
use store::sqlite::SqliteJournal;

use crate::harness::{REPLY, Server, Stage, assemble, data, input};
use crate::keys::{answer, cogn, session};

#[expect(clippy::disallowed_methods, reason = "the server lives in real time")]
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}

#[tokio::test]
async fn same_idempotency_key_runs_once() {
    let stage = Stage::new();
    // A second call of the back-end would fail: the script has one reply.
    let script = stage.script("once", &json!([{"reply": REPLY, "chunk_bytes": 7, "times": 1}]));
    let server = stage.serve(&[&script]);
    let ask = |server: &Server, name: &str, body: &Value| {
        server.execute("counter", body).header("idempotency-key", name)
    };
    let (one, two) = tokio::join!(
        ask(&server, "n1", &input()).send(),
        ask(&server, "n1", &input()).send()
    );
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!(session(&one), session(&two));
    let session_id = session(&one);
    let replayed = [&one, &two]
        .iter()
        .filter(|response| response.headers().contains_key("idempotency-replayed"))
        .count();
    assert_eq!(replayed, 1);
    let bodies = [one.text().await.unwrap(), two.text().await.unwrap()];
    assert_eq!(bodies[0], bodies[1]);
    // A repeated request has another span, and is still the same request.
    for span in ["1", "2"] {
        let trace = format!("00-{}-{}-01", "a".repeat(32), span.repeat(16));
        let traced = ask(&server, "n1", &input()).header("traceparent", trace);
        let traced = traced.send().await.unwrap();
        assert_eq!(
            (traced.status().as_u16(), session(&traced)),
            (200, session_id.clone())
        );
    }
    let (status, body) = answer(ask(&server, "n1", &json!({"text": "another"}))).await;
    assert_eq!((status, &body["error"]["code"]), (409, &json!("E1001")));
    let too_long = "x".repeat(256);
    assert_eq!(answer(ask(&server, &too_long, &input())).await.0, 400);
    server.kill();

    let server = stage.serve(&[&script]);
    let again = ask(&server, "n1", &input()).send().await.unwrap();
    assert_eq!(
        (
            session(&again),
            again.headers()["idempotency-replayed"].to_str().unwrap()
        ),
        (session_id, "true")
    );
    assert_eq!(again.text().await.unwrap(), bodies[0]);
}

#[tokio::test]
async fn run_with_idempotency_key_completes_after_disconnect() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(30)]);
    let ask = || {
        server
            .execute("counter", &input())
            .header("idempotency-key", "kept")
    };
    let gone = tokio::time::timeout(Duration::from_millis(200), ask().send()).await;
    assert!(gone.is_err(), "the answer came too early");
    let (status, body) = answer(ask()).await;
    assert_eq!((status, &body["data"]), (200, &data()), "{body}");
}

#[tokio::test]
async fn runs_are_listed_by_page_and_shown_with_their_result() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.script(
        "mixed",
        &json!([
            {"reply": REPLY, "times": 3},
            {"status": 400, "times": 1},
            {"reply": REPLY},
        ]),
    )]);
    for _ in 0..5 {
        server.execute("counter", &input()).send().await.unwrap();
    }
    let mut seen = Vec::new();
    let mut path = String::from("/v1/runs?limit=2");
    loop {
        let (status, page) = answer(server.get(&path)).await;
        assert_eq!(status, 200, "{page}");
        let runs = page["data"]["runs"].as_array().unwrap().clone();
        seen.extend(
            runs.iter()
                .map(|run| String::from(run["session_id"].as_str().unwrap())),
        );
        match page["data"]["next"].as_str() {
            Some(next) => path = format!("/v1/runs?limit=2&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen.len(), 5);
    assert!(seen.is_sorted_by(|newer, older| newer > older), "{seen:?}");
    for (state, count) in [("done", 4), ("failed", 1), ("running", 0), ("needs_review", 0)] {
        let (_, page) = answer(server.get(&format!("/v1/runs?state={state}"))).await;
        assert_eq!(
            page["data"]["runs"].as_array().unwrap().len(),
            count,
            "{state}: {page}"
        );
    }
    let (_, shown) = answer(server.get(&format!("/v1/runs/{}", seen[0]))).await;
    assert_eq!(shown["data"]["result"]["data"], data());
    for bad in ["state=odd", "limit=0", "limit=1000", "cursor=x"] {
        assert_eq!(
            answer(server.get(&format!("/v1/runs?{bad}"))).await.0,
            400,
            "{bad}"
        );
    }
}

/// Puts a completed run that waits for review into the journal.
async fn waiting_run(stage: &Stage, number: u128) -> RunId {
    let journal = SqliteJournal::open(&stage.path("journal.db")).await.unwrap();
    let (tenant, run) = (Tenant::local(), RunId::from_parts(1, number));
    let new = NewRun {
        id: run,
        kind: RunKind::Module(String::from("counter")),
        command: String::from("{}"),
        created_at_ms: 1,
        client: String::from("local"),
        once: None,
    };
    journal.create(&tenant, &new).await.unwrap();
    let reply: Value = serde_json::from_str(REPLY).unwrap();
    let mut last = json!({"final": true, "session_id": run});
    for key in ["ok", "meta", "data"] {
        last[key] = reply[key].clone();
    }
    let event = EncodedEvent {
        kind: EventKind::Final,
        seq: None,
        body: last.to_string().into(),
    };
    let mut end = RunEnd::new(None, now_ms(), Vec::new());
    end.review = Some(String::from("low confidence"));
    journal.finish(&tenant, run, 0, &[event], &end).await.unwrap();
    journal.close().await;
    run
}

#[tokio::test]
async fn reviewer_approves_rejects_or_edits_waiting_run() {
    let stage = Stage::new();
    let runs = [
        waiting_run(&stage, 1).await,
        waiting_run(&stage, 2).await,
        waiting_run(&stage, 3).await,
    ];
    let server = stage.serve(&[&stage.talker(0)]);
    let (_, page) = answer(server.get("/v1/runs?state=needs_review")).await;
    assert_eq!(page["data"]["runs"].as_array().unwrap().len(), 3);
    let review = |run: RunId, body: Value| {
        server
            .post(&format!("/v1/runs/{run}/review"))
            .body(body.to_string())
    };
    let edited = json!({"rationale": "a person counted", "n": 4});
    for bad in [
        json!({"decision": "maybe"}),
        json!({"decision": "edit"}),
        json!({"decision": "edit", "data": {"rationale": "no n"}}),
        json!({"decision": "edit", "data": {"rationale": "r", "n": "four"}}),
        json!({"decision": "approve", "data": edited}),
        json!({"decision": "approve", "more": 1}),
    ] {
        let (status, body) = answer(review(runs[0], bad.clone())).await;
        assert_eq!((status, &body["error"]["code"]), (400, &json!("E1001")), "{bad}");
    }
    for (run, body, decision) in [
        (
            runs[0],
            json!({"decision": "approve", "comment": "fine"}),
            "approved",
        ),
        (runs[1], json!({"decision": "reject"}), "rejected"),
        (runs[2], json!({"decision": "edit", "data": edited}), "edited"),
    ] {
        let (status, shown) = answer(review(run, body)).await;
        assert_eq!(status, 200, "{shown}");
        assert_eq!(shown["data"]["review"]["decision"], decision);
        assert_eq!(
            (&shown["data"]["review"]["by"], &shown["data"]["state"]),
            (&json!("local"), &json!("done"))
        );
        let (status, _) = answer(review(run, json!({"decision": "approve"}))).await;
        assert_eq!(status, 409, "the first word stands");
    }
    server.kill();
    let server = stage.serve(&[&stage.talker(0)]);
    let (_, shown) = answer(server.get(&format!("/v1/runs/{}", runs[2]))).await;
    assert_eq!(shown["data"]["result"]["data"], edited);
    let (_, page) = answer(server.get("/v1/runs?state=needs_review")).await;
    assert_eq!(page["data"]["runs"], json!([]));
}

/// From an answer below the confidence threshold to the review decision, over HTTP only.
#[tokio::test]
async fn run_held_by_gate_waits_for_review() {
    let stage = Stage::new();
    let config = stage.config("[gate]\nmin_confidence = 0.95\naction = \"review\"\n");
    let server = stage.serve_with(&["--config", &config], &[&stage.talker(0)]);
    let edited = json!({"rationale": "a person counted", "n": 4});
    for (accept, word, decision) in [
        ("text/event-stream", json!({"decision": "approve"}), "approved"),
        (
            "application/json",
            json!({"decision": "reject", "comment": "no"}),
            "rejected",
        ),
        (
            "application/x-ndjson",
            json!({"decision": "edit", "data": edited}),
            "edited",
        ),
    ] {
        let response = server
            .execute("counter", &input())
            .header("accept", accept)
            .send()
            .await
            .unwrap();
        let path = format!("/v1/runs/{}", session(&response));
        assert_eq!(response.status(), 200);
        let sent = response.text().await.unwrap();
        let (_, shown) = answer(server.get(&path)).await;
        assert_eq!(shown["data"]["state"], "needs_review", "{shown}");
        assert_eq!(
            shown["data"]["result"]["data"],
            data(),
            "the answer is there: {sent}"
        );
        assert!(
            shown["data"]["review"]["reason"]
                .as_str()
                .unwrap()
                .contains("confidence"),
            "{shown}"
        );
        let (_, page) = answer(server.get("/v1/runs?state=needs_review")).await;
        assert_eq!(page["data"]["runs"].as_array().unwrap().len(), 1);
        let (status, shown) = answer(server.post(&format!("{path}/review")).body(word.to_string())).await;
        assert_eq!(status, 200, "{shown}");
        assert_eq!(
            (&shown["data"]["state"], &shown["data"]["review"]["decision"]),
            (&json!("done"), &json!(decision))
        );
        let expected = if decision == "edited" {
            edited.clone()
        } else {
            data()
        };
        assert_eq!(shown["data"]["result"]["data"], expected);
        let (_, page) = answer(server.get("/v1/runs?state=needs_review")).await;
        assert_eq!(page["data"]["runs"], json!([]));
    }
}

#[tokio::test]
async fn every_run_is_counted_once_even_after_kill() {
    let stage = Stage::new();
    let talker = stage.script(
        "counted",
        &json!([{"events": [
            {"type": "block_delta", "index": 0, "delta": {"kind": "text", "text": REPLY}},
            {"type": "usage", "usage": {"input_tokens": 11, "output_tokens": 7}},
            {"type": "finish", "reason": "stop"}
        ]}]),
    );
    let server = stage.serve(&[&talker]);
    for _ in 0..2 {
        let (status, body) = answer(server.execute("counter", &input())).await;
        assert_eq!(status, 200, "{body}");
    }
    let (_, usage) = answer(server.get("/v1/usage?by=module")).await;
    let line = &usage["data"]["lines"][0];
    assert_eq!(
        (
            &line["runs"],
            &line["attempts"],
            &line["input_tokens"],
            &line["output_tokens"],
            &line["unknown"]
        ),
        (&json!(2), &json!(2), &json!(22), &json!(14), &json!(0)),
        "{usage}"
    );
    server.kill();
    let slow = stage.talker(200);
    let server = stage.serve(&[&slow]);
    let request = server
        .execute("actor", &input())
        .header("accept", "text/event-stream");
    let _open = request.send().await.unwrap();
    server.kill();
    let server = stage.serve(&[&talker]);
    let (_, usage) = answer(server.get("/v1/usage?by=module")).await;
    let actor = usage["data"]["lines"]
        .as_array()
        .unwrap()
        .iter()
        .find(|line| line["module"] == "actor")
        .unwrap();
    assert_eq!(
        (&actor["runs"], &actor["input_tokens"], &actor["unknown"]),
        (&json!(1), &Value::Null, &json!(1))
    );
    drop(server);
    let (code, listed, stderr) = cogn(&stage, &["usage", "--json", "--by", "module"]);
    assert_eq!(code, 0, "{stderr}");
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
}

#[tokio::test]
async fn full_journal_is_reported_as_error() {
    let stage = Stage::new();
    let config = stage.config("[journal]\nbytes_max = 400000\nkeep_bytes = 1000000000\n");
    let server = stage.serve_with(&["--config", &config], &[&stage.talker(0)]);
    let large = json!({"text": "x".repeat(20_000)});
    let mut good = Vec::new();
    let refused = loop {
        let response = server.execute("counter", &large).send().await.unwrap();
        if response.status() != 200 {
            break response;
        }
        good.push(session(&response));
        assert!(good.len() < 100, "it never became full");
    };
    assert!(
        [500, 503].contains(&refused.status().as_u16()),
        "{}",
        refused.status()
    );
    let body: Value = serde_json::from_slice(&refused.bytes().await.unwrap()).unwrap();
    assert_eq!(body["error"]["details"]["reason"], "journal_full", "{body}");
    server.kill();
    // A full journal does not prevent a start, and the stored results are available.
    let server = stage.serve_with(&["--config", &config], &[&stage.talker(0)]);
    for session in &good {
        let (status, shown) = answer(server.get(&format!("/v1/runs/{session}"))).await;
        assert_eq!((status, &shown["data"]["result"]["data"]), (200, &data()));
    }
    let (_, body) = answer(server.execute("counter", &large)).await;
    assert_eq!(body["error"]["details"]["reason"], "journal_full", "{body}");
}

#[tokio::test]
async fn journal_has_one_server() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let (journal, talker) = (stage.path("journal.db"), stage.talker(0));
    let mut second = stage.cogn();
    second.args(["serve", "--listen", "127.0.0.1:0", "--backend", &talker]);
    let refused = second.arg("--journal").arg(journal).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(
        said.contains("another server") && said.contains("--journal"),
        "{said}"
    );
    server.kill();
    let server = stage.serve(&[&stage.talker(0)]);
    assert_eq!(answer(server.execute("counter", &input())).await.0, 200);
}

#[cfg(unix)]
#[tokio::test]
async fn journal_files_are_private_to_the_owner() {
    use std::os::unix::fs::PermissionsExt;
    let stage = Stage::new();
    let others = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o077;
    let nested = stage.path("state/of/cogn/journal.db");
    let mut command = stage.cogn();
    command.args(["keys", "list", "--journal", nested.to_str().unwrap()]);
    assert!(command.output().unwrap().status.success());
    for made in nested.ancestors().take(3) {
        assert_eq!(others(made), 0, "{}", made.display());
    }
    let server = stage.serve(&[&stage.talker(0)]);
    assert_eq!(answer(server.execute("counter", &input())).await.0, 200);
    let chat = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    // The log of calls is removed when it is in the tables, a moment after the first call.
    let mut logs = 0;
    for _ in 0..20 {
        let chat = server.post("/v1/chat/completions").body(chat.to_string());
        assert_eq!(answer(chat).await.0, 200);
        for entry in std::fs::read_dir(stage.path("")).unwrap() {
            let path = entry.unwrap().path();
            let name = path.to_str().unwrap();
            if !name.contains("journal.db") {
                continue;
            }
            match path.metadata() {
                Ok(metadata) => assert_eq!(metadata.permissions().mode() & 0o077, 0, "{name}"),
                Err(_) => continue,
            }
            logs += usize::from(name.contains("-accounts-"));
        }
    }
    assert!(logs > 0);
}

#[tokio::test]
async fn expired_runs_are_pruned_and_then_unknown() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let response = server.execute("counter", &input()).send().await.unwrap();
    let session = session(&response);
    server.kill();
    let config = stage.config("[journal]\nkeep_days = 0\n");
    let server = stage.serve_with(&["--config", &config], &[&stage.talker(0)]);
    let path = format!("/v1/runs/{session}");
    let gone = async {
        while answer(server.get(&path)).await.0 != 404 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.unwrap();
    let body = json!({"input": input(), "_recovery": {"session_id": session, "last_seq": 3}});
    let text = server
        .execute("counter", &body)
        .header("accept", "text/event-stream");
    let text = text.send().await.unwrap().text().await.unwrap();
    assert!(text.contains("W4013"), "{text}");
    assert_eq!(assemble(&text).envelope["data"], data());
    let (_, usage) = answer(server.get("/v1/usage?by=module")).await;
    assert!(usage["data"]["lines"][0]["runs"].as_u64() >= Some(1), "{usage}");
}
