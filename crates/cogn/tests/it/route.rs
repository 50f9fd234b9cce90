//! `cogn route`: its output equals the routing of a run.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use crate::harness::{REPLY, Stage};

/// Four back-ends, three of which can be called.
const CONFIG: &str = r#"
[[credentials]]
name = "absent"
env = "COGN_TEST_NO_SUCH_VARIABLE"
[[backends]]
name = "first"
kind = "scripted"
script = "first.yaml"
priority = 10
[[backends]]
name = "second"
kind = "scripted"
script = "second.yaml"
[[backends]]
name = "drained"
kind = "scripted"
script = "second.yaml"
weight = 0
[[backends]]
name = "keyless"
kind = "openai"
credential = "absent"
[[backends]]
name = "blind"
kind = "openai"
model = "text-only"
base_url = "http://127.0.0.1:9/v1"
features = ["supports_stream"]
priority = -1
"#;

fn stage(policy: &str) -> Stage {
    let stage = Stage::new();
    fs::write(stage.path("cogn.toml"), format!("{CONFIG}{policy}")).unwrap();
    stage.script("first", &json!([{"status": 503}]));
    stage.script("second", &json!([{"reply": REPLY}]));
    stage
}

fn route(stage: &Stage, arguments: &[&str]) -> Output {
    stage.cogn().arg("route").args(arguments).output().unwrap()
}

fn request(stage: &Stage, request: &Value) -> String {
    let path = stage.path("request.json");
    fs::write(&path, request.to_string()).unwrap();
    path.display().to_string()
}

fn chat(parts: &Value) -> Value {
    json!({
        "version": 1,
        "request_id": "r1",
        "operation": "chat_completions",
        "payload": {"messages": [{"role": "user", "content": parts}]}
    })
}

fn names(explained: &Value) -> Vec<&str> {
    let order = explained["order"].as_array().unwrap();
    order.iter().map(|one| one["name"].as_str().unwrap()).collect()
}

#[test]
fn explain_lists_order_and_reasons_for_rejection() {
    let stage = stage("[routing]\npolicy = \"priority\"\n");
    let file = request(&stage, &chat(&json!("hello")));
    let output = route(&stage, &["--explain", &file, "--json", "--seed", "7"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let explained: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(explained["policy"], "priority");
    assert_eq!(explained["seed"], 7);
    assert_eq!(names(&explained), ["first", "second", "blind"]);
    let rejected = explained["rejected"].as_array().unwrap();
    let reason = |name: &str| {
        let one = rejected.iter().find(|one| one["name"] == name).unwrap();
        String::from(one["reason"].as_str().unwrap())
    };
    assert_eq!(reason("drained"), "out of service (weight 0)");
    assert!(
        reason("keyless").contains("COGN_TEST_NO_SUCH_VARIABLE"),
        "{rejected:?}"
    );

    let plain = route(&stage, &[&file]);
    assert_eq!(String::from_utf8_lossy(&plain.stdout), "first\nsecond\nblind\n");
}

#[test]
fn unroutable_request_reports_its_code() {
    let stage = stage("");
    let picture = json!([{"type": "image", "image": {"kind": "http_url", "url": "https://example.com/a.png", "mime": "image/png"}}]);
    let mut asked = chat(&picture);
    asked["routing"] = json!({"backend": "blind"});
    let file = request(&stage, &asked);
    let output = route(&stage, &["--explain", &file, "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let explained: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(explained["code"], "E4011", "{explained}");
}

#[test]
fn unknown_policy_is_an_error() {
    let stage = stage("");
    let mut asked = chat(&json!("hello"));
    asked["policy"] = json!("fastest");
    let file = request(&stage, &asked);
    let output = route(&stage, &["--explain", &file]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("unknown routing policy `fastest`"), "{said}");
}

#[test]
fn same_seed_gives_same_plan() {
    let stage = stage("[routing]\npolicy = \"weighted_random\"\n");
    let mut asked = chat(&json!("hello"));
    asked["routing"] = json!({"backend_denylist": ["first"], "preferred_backends": []});
    let file = request(&stage, &asked);
    let order = |seed: &str| route(&stage, &[&file, "--seed", seed]).stdout;
    assert_eq!(order("3"), order("3"));
}

#[test]
fn run_follows_the_plan_and_traces_its_attempts() {
    let stage = stage("[routing]\npolicy = \"priority\"\n");
    let input = stage.path("input.json");
    fs::write(&input, json!({"text": "two words"}).to_string()).unwrap();
    let input = input.display().to_string();
    let planned = route(&stage, &["--module", "counter", &input]);
    let planned = String::from_utf8(planned.stdout).unwrap();
    let trace = stage.path("trace.json").display().to_string();
    let run = stage
        .cogn()
        .args(["run", "counter", &input, "--json", "--trace", &trace])
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    let trace: Value = serde_json::from_slice(&fs::read(&trace).unwrap()).unwrap();
    let attempts = trace["route"]["attempts"].as_array().unwrap();
    let asked: Vec<&str> = attempts
        .iter()
        .map(|one| one["backend"].as_str().unwrap())
        .collect();
    assert_eq!(asked, ["first", "second"]);
    assert!(planned.starts_with("first\nsecond\n"), "{planned}");
    assert_eq!(attempts[0]["outcome"], "failed");
    assert_eq!(attempts[0]["error"]["status"], 503);
    assert_eq!(attempts[0]["usage"], Value::Null);
    assert_eq!(attempts[1]["outcome"], "succeeded");
    assert_eq!(attempts[1]["role"], "failover");
    assert!(trace["route"]["seed"].is_u64());
}

/// The plan of an operation other than chat.
#[test]
fn every_operation_can_be_planned() {
    let stage = Stage::new();
    stage.configure(
        "[[backends]]\nname = \"talker\"\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\n\
         [[backends]]\nname = \"ears\"\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\n\
         operations = [\"speech_to_text\"]\nlacks = [\"supports_timestamps\"]\n",
    );
    let sound = json!({
        "version": 1, "request_id": "r", "operation": "speech_to_text",
        "requirements": {"required_features": ["supports_audio_input"]},
        "payload": {"audio": {"kind": "sms_file", "uri": "sms+file://01JFK...ABCD", "mime": "audio/wav"}, "timestamps": true}
    });
    let path = request(&stage, &sound);
    let output = route(&stage, &[&path, "--explain"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("1. ears") && text.contains("without supports_timestamps"),
        "{text}"
    );
    assert!(text.contains("talker  does not support speech_to_text"), "{text}");
    let mut strict = sound;
    strict["degradation"] = json!("strict");
    let path = request(&stage, &strict);
    let output = route(&stage, &[&path, "--explain"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("E4011") && text.contains("lacks supports_timestamps"),
        "{text}"
    );
}
