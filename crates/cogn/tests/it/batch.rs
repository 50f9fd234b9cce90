//! `cogn run --batch` from outside.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use crate::stage::{REPLY, Stage};

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

/// Each line is asked once, however often the batch is started and wherever it was cut.
#[test]
fn a_batch_goes_on_where_it_was() {
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

    // Killed: two lines are there, a third is cut. Who is asked now knows only the last text.
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

    // Nothing is left to ask; other inputs do not mix with these answers.
    let nobody = stage.script("nobody", &json!([]));
    let third = batch(&stage, &nobody);
    let summary: Value = serde_json::from_slice(&third.stdout).unwrap();
    assert_eq!(summary["done_before"], 4, "{third:?}");
    fs::write(stage.path("in.jsonl"), "{\"text\": \"another\"}\n").unwrap();
    assert_eq!(batch(&stage, &nobody).status.code(), Some(2));
}
