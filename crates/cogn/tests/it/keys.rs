//! API keys and limits of a running server.

use std::process::Command;
use std::time::Duration;

use futures::StreamExt;
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::harness::{Server, Stage, assemble, chunks, data, input};
use crate::workspace::Workspace;

/// A server that requires authentication.
pub(crate) fn closed(stage: &Stage, backends: &[&str]) -> Server {
    stage.serve_with(&["--require-auth"], backends)
}

pub(crate) fn cogn(stage: &Stage, args: &[&str]) -> (i32, String, String) {
    let mut command: Command = stage.cogn();
    command
        .args(args)
        .args(["--journal", stage.path("journal.db").to_str().unwrap()]);
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (
        output.status.code().unwrap(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// A new key, as text.
pub(crate) fn key(stage: &Stage, args: &[&str]) -> String {
    let (code, stdout, stderr) = cogn(stage, &[&["keys", "create", "test"], args].concat());
    assert_eq!(code, 0, "{stderr}");
    String::from(stdout.trim())
}

pub(crate) async fn answer(request: RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (
        status,
        serde_json::from_slice(&response.bytes().await.unwrap()).unwrap(),
    )
}

pub(crate) fn session(response: &reqwest::Response) -> String {
    String::from(response.headers()["x-cognitive-session"].to_str().unwrap())
}

#[tokio::test]
async fn configured_store_is_used_unless_a_file_is_named() {
    let stage = Stage::new();
    let database = stage.path("state/configured.db");
    let keys = |journal: &[&str]| {
        let output = stage
            .cogn()
            .args(["keys", "create", "test"])
            .args(journal)
            .env("COGN_STORE__METADATA", format!("sqlite:{}", database.display()))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    keys(&["--journal", stage.path("named.db").to_str().unwrap()]);
    assert!(stage.path("named.db").try_exists().unwrap());
    assert!(!database.try_exists().unwrap());
    keys(&[]);
    assert!(database.try_exists().unwrap());
}

/// A folder with a `cogn.toml` has its own data folder, outside the project.
#[test]
fn projects_have_separate_keys() {
    let workspace = Workspace::new();
    for project in ["a/shop", "b/shop"] {
        std::fs::create_dir_all(workspace.path().join(project).join("inner")).unwrap();
        std::fs::write(workspace.path().join(project).join("cogn.toml"), "").unwrap();
    }
    let made = workspace.run_in("a/shop", &["keys", "create", "mine"]);
    assert_eq!(made.code(), 0, "{}", made.stderr());
    let state = workspace.path().join("home/.local/state/cogn");
    assert!(
        made.stderr().contains("(of the project ") && made.stderr().contains("/a/shop)"),
        "{}",
        made.stderr()
    );
    let folders: Vec<_> = std::fs::read_dir(state.join("projects"))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(folders.len(), 1);
    assert!(folders[0].file_name().to_str().unwrap().starts_with("shop-"));
    assert!(folders[0].path().join("journal.db").is_file());
    let count = |folder: &str| {
        workspace
            .run_in(folder, &["keys", "list", "--json"])
            .json()
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(
        [
            count("a/shop"),
            count("a/shop/inner"),
            count("b/shop"),
            count(".")
        ],
        [1, 1, 0, 0]
    );
    let inside: Vec<_> = std::fs::read_dir(workspace.path().join("a/shop"))
        .unwrap()
        .collect();
    assert_eq!(inside.len(), 2, "nothing is written into the project");
    let named = workspace.run_in("b/shop", &["keys", "list", "--journal", "other.db"]);
    assert!(!named.stderr().contains("journal:"), "{}", named.stderr());
}

#[tokio::test]
async fn server_with_required_auth_refuses_other_requests() {
    let stage = Stage::new();
    let (good, reader) = (key(&stage, &[]), key(&stage, &["--scope", "read"]));
    let server = closed(&stage, &[&stage.talker(0)]);
    let (status, _) = answer(server.get("/healthz")).await;
    assert_eq!(status, 200);
    let wrong = format!("{}0", good.split_at(good.len() - 1).0);
    let other_bits = if wrong == good {
        format!("{}1", good.split_at(good.len() - 1).0)
    } else {
        wrong
    };
    for path in [
        "/v1/modules",
        "/v1/runs",
        "/v1/capabilities",
        "/metrics",
        "/v1/nowhere",
        "/v1/ws",
    ] {
        let response = server.get(path).send().await.unwrap();
        assert_eq!(response.status(), 401, "{path}");
        assert_eq!(response.headers()["www-authenticate"], "Bearer");
        let body: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        assert_eq!(body["error"]["code"], "E4007");
        for bad in [&other_bits, "nonsense", "a.b.c", ""] {
            let (status, _) = answer(server.get(path).header("authorization", format!("Bearer {bad}"))).await;
            assert_eq!(status, 401, "{path} with {bad}");
            let (status, _) = answer(server.get(path).header("x-api-key", bad)).await;
            assert_eq!(status, 401, "{path} with {bad}");
        }
    }
    for (name, value) in [
        ("authorization", format!("Bearer {good}")),
        ("x-api-key", good.clone()),
    ] {
        let (status, body) = answer(server.execute("counter", &input()).header(name, &value)).await;
        assert_eq!((status, &body["data"]), (200, &data()), "{name}");
    }
    let (status, body) = answer(server.execute("counter", &input()).header("x-api-key", &reader)).await;
    assert_eq!(
        (status, &body["error"]["details"]["scope"]),
        (403, &json!("execute"))
    );
    let (status, _) = answer(server.get("/v1/modules").header("x-api-key", &reader)).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn key_ends_when_revoked_or_expired() {
    let stage = Stage::new();
    let (good, brief) = (key(&stage, &[]), key(&stage, &["--expires", "1ms"]));
    let server = closed(&stage, &[&stage.talker(0)]);
    let ask = |key: &str| server.get("/v1/modules").header("x-api-key", key);
    assert_eq!(answer(ask(&brief)).await.0, 401);
    assert_eq!(answer(ask(&good)).await.0, 200);
    let (_, listed, _) = cogn(&stage, &["keys", "list", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let standings: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|key| key["standing"].as_str().unwrap())
        .collect();
    assert_eq!(standings, ["active", "expired"]);
    let (_, table, _) = cogn(&stage, &["keys", "list"]);
    let lines: Vec<&str> = table.lines().collect();
    assert!(
        lines[0].starts_with("ID ") && lines[0].contains("CREATED (UTC)"),
        "{table}"
    );
    assert!(
        lines[1].contains("active") && lines[1].contains("never"),
        "{table}"
    );
    assert!(
        lines[2].contains("expired") && !lines[2].contains("never"),
        "{table}"
    );
    assert_eq!(lines[0].find("STATUS"), lines[1].find("active"), "{table}");
    let id = listed[0]["id"].as_str().unwrap();
    assert!(good.contains(id) && !listed.to_string().contains(&good));
    assert_eq!(cogn(&stage, &["keys", "revoke", id]).0, 0);
    assert_eq!(cogn(&stage, &["keys", "revoke", "000000000000"]).0, 2);
    // A running server caches a key for a second.
    let closes = async {
        while answer(ask(&good)).await.0 != 401 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), closes)
        .await
        .unwrap();
}

#[tokio::test]
async fn key_grants_only_listed_modules_and_models() {
    let stage = Stage::new();
    let narrow = key(&stage, &["--module", "counter"]);
    let other_model = key(&stage, &["--model", "another"]);
    let this_model = key(&stage, &["--model", "small"]);
    let script = stage.talker(0);
    let script = script.strip_prefix("scripted:").unwrap();
    let config = stage.config(&format!(
        "[[backends]]\nname = \"b\"\nkind = \"scripted\"\nmodel = \"small\"\nscript = {script:?}\n"
    ));
    let server = stage.serve_with(&["--require-auth", "--config", &config], &[]);
    let run = |module: &str, key: &str| server.execute(module, &input()).header("x-api-key", key);
    assert_eq!(answer(run("counter", &narrow)).await.0, 200);
    let (status, body) = answer(run("waiter", &narrow)).await;
    assert_eq!((status, &body["error"]["code"]), (403, &json!("E4007")));
    let (_, modules) = answer(server.get("/v1/modules").header("x-api-key", &narrow)).await;
    assert_eq!(modules["data"]["modules"].as_array().unwrap().len(), 1);
    assert_eq!(answer(run("counter", &this_model)).await.0, 200);
    let (status, body) = answer(run("counter", &other_model)).await;
    assert_eq!((status, &body["error"]["code"]), (503, &json!("E4001")), "{body}");
    // Nor by a field that only the back-end parses.
    for (more, key, expected) in [
        (json!({}), &this_model, 200),
        (json!({"models": ["another"]}), &this_model, 403),
        (json!({"Model": "another"}), &this_model, 403),
        (json!({"models": ["another"]}), &narrow, 200),
    ] {
        let mut question = json!({"model": "small", "messages": [{"role": "user", "content": "?"}]});
        question
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let request = server.post("/v1/chat/completions").body(question.to_string());
        let (status, body) = answer(request.header("x-api-key", key)).await;
        assert_eq!(status, expected, "{more}: {body}");
    }
    let embeddings = json!({"model": "small", "input": "?", "Models": ["another"]});
    let canonical = json!({
        "request_id": "r", "operation": "embeddings",
        "payload": {"model": "small", "input": "?", "ext": {"openai_chat": {"fallbacks": ["another"]}}},
    });
    for (path, question) in [("/v1/embeddings", embeddings), ("/v1/canonical", canonical)] {
        let request = server.post(path).body(question.to_string());
        let (status, body) = answer(request.header("x-api-key", &this_model)).await;
        assert_eq!(status, 403, "{path}: {body}");
    }
}

#[tokio::test]
async fn run_of_another_tenant_is_not_found() {
    let stage = Stage::new();
    let mine = key(&stage, &["--tenant", "mine"]);
    let theirs = key(&stage, &["--tenant", "theirs"]);
    let server = closed(&stage, &[&stage.talker(0)]);
    let response = server
        .execute("counter", &input())
        .header("x-api-key", &mine)
        .send()
        .await
        .unwrap();
    let session = session(&response);
    let path = format!("/v1/runs/{session}");
    let by = |request: RequestBuilder, key: &str| request.header("x-api-key", key);
    assert_eq!(answer(by(server.get(&path), &mine)).await.0, 200);
    for request in [
        server.get(&path),
        server.get(&format!("{path}/events")),
        server.post(&format!("{path}/cancel")),
        server.post(&format!("{path}/token")),
    ] {
        let (status, body) = answer(by(request, &theirs)).await;
        assert_eq!((status, &body["error"]["code"]), (404, &json!("E4009")));
    }
    let recovery = json!({"input": input(), "_recovery": {"session_id": session, "last_seq": 1}});
    let resumed = by(server.execute("counter", &recovery), &theirs).header("accept", "text/event-stream");
    let text = resumed.send().await.unwrap().text().await.unwrap();
    assert!(
        text.contains("W4013") && !text.contains(&format!(r#""session_id":"{session}"#)),
        "{text}"
    );
    let (_, runs) = answer(by(server.get("/v1/runs"), &theirs)).await;
    assert!(!runs.to_string().contains(&session), "{runs}");
}

#[tokio::test]
async fn rate_and_concurrency_limits_are_per_key() {
    let stage = Stage::new();
    let (few, one, free) = (
        key(&stage, &["--rate", "2/h"]),
        key(&stage, &["--concurrency", "1"]),
        key(&stage, &[]),
    );
    let server = closed(&stage, &[&stage.talker(100)]);
    let modules = |key: &str| server.get("/v1/modules").header("x-api-key", key);
    for expected in [200, 200, 429] {
        let response = modules(&few).send().await.unwrap();
        assert_eq!(response.status(), expected);
        if expected == 429 {
            let seconds: u64 = response.headers()["retry-after"]
                .to_str()
                .unwrap()
                .parse()
                .unwrap();
            assert!((1..=1_800).contains(&seconds), "{seconds}");
        }
    }
    assert_eq!(answer(modules(&free)).await.0, 200);
    let run = |key: &str| {
        let request = server.execute("counter", &input()).header("x-api-key", key);
        request.header("accept", "text/event-stream").send()
    };
    let first = run(&one).await.unwrap();
    assert_eq!(first.status(), 200);
    let second = run(&one).await.unwrap();
    assert_eq!(second.status(), 429);
    let body: Value = serde_json::from_slice(&second.bytes().await.unwrap()).unwrap();
    assert_eq!(body["error"]["details"]["limit"], "concurrency");
    assert_eq!(run(&free).await.unwrap().status(), 200);
}

#[tokio::test]
async fn idempotent_repeat_takes_no_run_permit() {
    let stage = Stage::new();
    let one = key(&stage, &["--concurrency", "1"]);
    let config = stage.config("[limits]\nruns_max = 1\nqueue_max = 0\n");
    let flags = ["--require-auth", "--config", &config];
    let server = stage.serve_with(&flags, &[&stage.talker(50)]);
    let ask = || {
        let request = server.execute("counter", &input()).header("x-api-key", &one);
        let request = request.header("accept", "text/event-stream");
        request.header("idempotency-key", "n1").send()
    };
    let first = ask().await.unwrap();
    let again = ask().await.unwrap();
    assert_eq!((again.status().as_u16(), session(&again)), (200, session(&first)));
    let (first, again) = (first.text().await.unwrap(), again.text().await.unwrap());
    assert_eq!(assemble(&first).envelope["data"], data());
    assert_eq!(chunks(&again), chunks(&first));
}

/// Reads a stream up to the first event of a kind.
async fn until(response: reqwest::Response, kind: &str) -> String {
    let mut pieces = response.bytes_stream();
    let mut text = String::new();
    while !text.contains(&format!("event: {kind}\n")) {
        let piece = pieces.next().await.expect("the stream continues").unwrap();
        text.push_str(&String::from_utf8_lossy(&piece));
    }
    text
}

#[tokio::test]
async fn full_server_refuses_and_queue_is_fair_between_keys() {
    let stage = Stage::new();
    let (greedy, modest) = (key(&stage, &[]), key(&stage, &[]));
    let config = stage.config("[limits]\nruns_max = 1\nqueue_max = 2\nqueue_wait_ms = 600000\n");
    let server = stage.serve_with(&["--require-auth", "--config", &config], &[&stage.talker(300)]);
    let run = async |key: &str, accept: &str| {
        let request = server.execute("counter", &input()).header("x-api-key", key);
        request.header("accept", accept).send().await.unwrap()
    };
    let stream = "text/event-stream";
    // One run is active, two wait and report it, and the rest are refused.
    let first = run(&greedy, stream).await;
    let (second, third) = (run(&greedy, stream).await, run(&greedy, stream).await);
    for accept in [stream, "application/json"] {
        let refused = run(&greedy, accept).await;
        assert_eq!(refused.status(), 503);
        assert!(refused.headers().contains_key("retry-after"));
    }
    // The queue is full of the other key's requests: the newest of them is evicted, and the next permit does
    // not go to the earlier ones either.
    let asking = run(&modest, stream).await;
    let evicted = third.text().await.unwrap();
    assert!(evicted.contains(r#""stage":"queue""#), "{evicted}");
    let error = &assemble(&evicted).envelope["error"];
    assert_eq!(
        (&error["code"], &error["recoverable"]),
        (&json!("E4002"), &json!(true))
    );
    assert!(error["details"]["retry_after_ms"].is_u64(), "{evicted}");
    let cancel = server.post(&format!("/v1/runs/{}/cancel", session(&first)));
    assert_eq!(
        cancel.header("x-api-key", &greedy).send().await.unwrap().status(),
        200
    );
    tokio::select! {
        biased;
        served = until(asking, "chunk") => assert!(served.contains(r#""stage":"queue""#), "{served}"),
        other = until(second, "chunk") => panic!("out of order: {other}"),
    }
}

#[tokio::test]
async fn ticket_opens_events_of_one_run_once() {
    let stage = Stage::new();
    let good = key(&stage, &[]);
    let server = closed(&stage, &[&stage.talker(0)]);
    let by = |request: RequestBuilder| request.header("x-api-key", &good);
    let response = by(server.execute("counter", &input())).header("accept", "text/event-stream");
    let response = response.send().await.unwrap();
    let session = session(&response);
    let first = response.text().await.unwrap();
    let (_, ticket) = answer(by(server.post(&format!("/v1/runs/{session}/token")))).await;
    let url = ticket["data"]["url"].as_str().unwrap();
    let events = server.get(url).header("last-event-id", "2").send().await.unwrap();
    assert_eq!(events.status(), 200);
    let rest = events.text().await.unwrap();
    assert_eq!(chunks(&rest), chunks(&first).split_off(2));
    assert_eq!(server.get(url).send().await.unwrap().status(), 401);
    let (_, ticket) = answer(by(server.post(&format!("/v1/runs/{session}/token")))).await;
    let token = ticket["data"]["token"].as_str().unwrap();
    let elsewhere = server
        .get(&format!("/v1/runs?token={token}"))
        .send()
        .await
        .unwrap();
    assert_eq!(elsewhere.status(), 401);
}

#[test]
fn non_loopback_address_requires_authentication() {
    let stage = Stage::new();
    let mut command = stage.cogn();
    command.args(["serve", "--listen", "0.0.0.0:0", "--backend", &stage.talker(0)]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("--require-auth"),
        "{output:?}"
    );
    let server = stage.serve_with(&["--require-auth", "--listen", "0.0.0.0:0"], &[&stage.talker(0)]);
    assert!(server.url.contains("0.0.0.0"), "{}", server.url);
}
