//! The memory of large and of dense bodies is bounded, however many arrive at once on one connection.

use std::fs;

use serde_json::json;

use crate::harness::{Server, Stage, input};

const MIB: usize = 1024 * 1024;

/// The highest resident memory of the server so far, in MiB.
fn peak_mib(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// An array of `{"":0}` with so many bytes.
fn dense(bytes: usize) -> String {
    format!("[{}0]", r#"{"":0},"#.repeat(bytes / 7))
}

/// Sends the body so many times at once over one HTTP/2 connection, and returns the statuses.
async fn flood(server: &Server, path: &str, body: String, times: usize) -> Vec<u16> {
    let client = reqwest::Client::builder()
        .http2_prior_knowledge()
        .build()
        .unwrap();
    let url = format!("{}{path}", server.url);
    // One copy for all requests, for the rest of the process.
    let body: &'static str = body.leak();
    let sent = (0..times).map(|_| client.post(&url).body(body).send());
    let answers = futures::future::join_all(sent).await;
    // A refused body resets its stream, which the client may report as an error.
    answers
        .into_iter()
        .map(|answer| answer.map_or(0, |answer| answer.status().as_u16()))
        .collect()
}

#[tokio::test]
async fn many_large_bodies_raise_the_memory_by_the_budget_only() {
    let stage = Stage::new();
    stage.configure("[server]\nbody_memory_bytes_max = 134217728\n");
    // Answers late, so that the bodies that are admitted are in use at the same time.
    let server = stage.serve(&[&stage.talker(20)]);
    let answer = server.execute("counter", &input()).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let before = peak_mib(&server);

    // Above the limit of values, which is known only when all of the body has arrived.
    let statuses = flood(&server, "/v1/modules/counter/execute", dense(16 * MIB - 16), 96).await;
    assert!(!statuses.contains(&200), "{statuses:?}");
    // Within it: the trees are in use until the calls have ended.
    let chat = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).to_string();
    let filler = dense(3 * MIB / 2);
    let chat = format!("{},\"x_filler\":{filler}}}", chat.strip_suffix('}').unwrap());
    let statuses = flood(&server, "/v1/chat/completions", chat, 16).await;
    assert!(statuses.contains(&200), "{statuses:?}");

    // 128 MiB of budget; its estimates and the allocator may be off by a factor of three together.
    let raised = peak_mib(&server) - before;
    assert!(raised < 3 * 128, "the peak rose by {raised} MiB");
    let answer = server.execute("counter", &input()).send().await.unwrap();
    assert_eq!(answer.status(), 200);
}
