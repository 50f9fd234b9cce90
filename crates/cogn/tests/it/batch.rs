//! `cogn run --batch`, tested with the binary.

use std::fs;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::http::{MockServer, ReceivedRequest, ScriptedResponse};

use crate::harness::{REPLY, Stage};

fn batch(stage: &Stage, backend: &str) -> Output {
    let mut command = stage.cogn();
    command.args([
        "run",
        "counter",
        "--batch",
        "in.jsonl",
        "-o",
        "out.jsonl",
        "--json",
    ]);
    command.args(["--backend", backend]).output().unwrap()
}

fn rows(stage: &Stage) -> Vec<Value> {
    let text = fs::read_to_string(stage.path("out.jsonl")).unwrap();
    let mut rows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    rows.sort_by_key(|row| row["line"].as_u64());
    rows
}

/// Each input line is sent once, however often the batch is started and wherever the output was truncated.
#[test]
fn batch_resumes_after_truncated_output() {
    let stage = Stage::new();
    let lines = [
        json!({"text": "one"}),
        json!({"id": "b", "input": {"text": "two"}}),
        json!({"txt": "does not fit"}),
        json!({"text": "four"}),
    ];
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    fs::write(stage.path("in.jsonl"), text.join("\n")).unwrap();
    let talker = stage.talker(0);
    let first = batch(&stage, &talker);
    assert_eq!(first.status.code(), Some(1), "{first:?}");
    let all = rows(&stage);
    let good: Vec<bool> = all.iter().map(|row| row["envelope"]["ok"] == true).collect();
    assert_eq!(good, [true, true, false, true]);
    assert_eq!(all[1]["id"], "b");
    assert_eq!(all[2]["envelope"]["error"]["code"], "E1002");

    // Killed: two lines are complete, a third is truncated. The next script answers only the last text.
    let kept = format!("{}\n{}\n{{\"line\": 3, \"inp", all[0], all[1]);
    fs::write(stage.path("out.jsonl"), kept).unwrap();
    let only = stage.script("only", &json!([{"match": "four", "reply": REPLY, "times": 1}]));
    let second = batch(&stage, &only);
    let summary: Value = serde_json::from_slice(&second.stdout).unwrap();
    assert_eq!(
        summary,
        json!({"lines": 4, "ok": 3, "failed": 1, "done_before": 2})
    );
    assert_eq!(rows(&stage).len(), 4);

    // Nothing is left to send; different inputs are not mixed with these results.
    let no_replies = stage.script("empty", &json!([]));
    let third = batch(&stage, &no_replies);
    let summary: Value = serde_json::from_slice(&third.stdout).unwrap();
    assert_eq!(summary["done_before"], 4, "{third:?}");
    fs::write(stage.path("in.jsonl"), "{\"text\": \"another\"}\n").unwrap();
    assert_eq!(batch(&stage, &no_replies).status.code(), Some(2));
}

/// The input texts that a back-end received, one per call.
fn texts_asked(server: &MockServer) -> Vec<String> {
    let text = |asked: &ReceivedRequest| {
        let body = asked.text();
        let (_, words) = body.split_once("words of: ").unwrap();
        words.split(['\\', '"']).next().unwrap().to_owned()
    };
    server.received().iter().map(text).collect()
}

fn piece() -> String {
    let piece = json!({"choices": [{"index": 0, "delta": {"content": REPLY}, "finish_reason": "stop"}]});
    format!("data: {piece}\n\ndata: [DONE]\n\n")
}

/// The process is killed while calls are in flight. Answered lines are not sent again, the others are.
#[test]
fn killed_batch_resumes() {
    let stage = Stage::new();
    let lines: Vec<String> = (0..12)
        .map(|n| json!({"text": format!("line {n:02}")}).to_string())
        .collect();
    fs::write(stage.path("in.jsonl"), lines.join("\n")).unwrap();
    // Four calls are answered; the others are held until the process is killed.
    let first = MockServer::with_responder(|_, asked| {
        let quick = (0..4).any(|n| asked.text().contains(&format!("line {n:02}")));
        let answer = ScriptedResponse::good("text/event-stream", piece());
        if quick {
            answer
        } else {
            answer.after(Duration::from_secs(600))
        }
    });
    let config = |server: &MockServer| {
        let url = server.url("/v1");
        stage.configure(&format!(
            "[[backends]]\nname = \"b\"\nkind = \"openai\"\nbase_url = \"{url}\"\nmodel = \"m\"\n"
        ));
    };
    let start = || {
        let mut command = stage.cogn();
        command.args([
            "run",
            "counter",
            "--batch",
            "in.jsonl",
            "-o",
            "out.jsonl",
            "--json",
        ]);
        command.args(["--backend", "b"]).stdout(Stdio::piped());
        command.spawn().unwrap()
    };
    config(&first);
    let mut child = start();
    let written = || {
        fs::read_to_string(stage.path("out.jsonl"))
            .unwrap_or_default()
            .lines()
            .count()
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while written() < 4 || first.received().len() < 5 {
        assert!(Instant::now() < deadline, "{} written", written());
        assert!(child.try_wait().unwrap().is_none(), "it has ended by itself");
        std::thread::park_timeout(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let second = MockServer::with_responses(ScriptedResponse::good("text/event-stream", piece()));
    config(&second);
    let done = start().wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let summary: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(
        summary,
        json!({"lines": 12, "ok": 12, "failed": 0, "done_before": 4})
    );
    let mut again = texts_asked(&second);
    again.sort();
    let rest: Vec<String> = (4..12).map(|n| format!("line {n:02}")).collect();
    assert_eq!(again, rest, "each of the others once");
    let numbers: Vec<u64> = rows(&stage)
        .iter()
        .map(|row| row["line"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=12).collect::<Vec<u64>>());
}
