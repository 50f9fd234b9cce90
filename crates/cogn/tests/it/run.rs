//! `cogn run`, tested with the binary.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::harness::{REPLY, Stage, assemble, binary, chunks, data};

fn run(stage: &Stage, backends: &[&str], arguments: &[&str]) -> Output {
    let mut command = stage.cogn();
    command.arg("run").args(arguments);
    for backend in backends {
        command.args(["--backend", backend]);
    }
    command.output().unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn input_file(stage: &Stage, input: &Value) -> String {
    let path = stage.path("input.json");
    fs::write(&path, input.to_string()).unwrap();
    path.display().to_string()
}

/// The envelope without the fields that differ between any two runs.
fn stable_fields(mut envelope: Value) -> Value {
    if let Some(meta) = envelope.get_mut("meta").and_then(Value::as_object_mut) {
        meta.remove("processing_time_ms");
        meta.remove("latency_ms");
    }
    envelope
}

#[test]
fn chunks_assemble_to_the_envelope_of_an_unstreamed_run() {
    let stage = Stage::new();
    let talker = stage.talker(0);
    let input = input_file(&stage, &json!({"text": "two words"}));
    let unstreamed = run(&stage, &[&talker], &["counter", &input, "--json"]);
    assert_eq!(unstreamed.status.code(), Some(0), "{unstreamed:?}");
    let unstreamed: Value = serde_json::from_slice(&unstreamed.stdout).unwrap();
    assert_eq!(unstreamed["data"], data());
    assert_eq!(unstreamed["meta"]["model"], "scripted/talker0");

    let streamed = run(&stage, &[&talker], &["counter", &input, "--stream", "--json"]);
    assert_eq!(streamed.status.code(), Some(0), "{streamed:?}");
    let text = stdout(&streamed);
    assert!(chunks(text).len() > 5, "{text}");
    assert_eq!(stable_fields(assemble(text).envelope), stable_fields(unstreamed));
}

#[test]
fn human_output_shows_fields_then_verdict() {
    let stage = Stage::new();
    let input = input_file(&stage, &json!({"text": "two words"}));
    let output = run(&stage, &[&stage.talker(0)], &["counter", &input, "--stream"]);
    let text = stdout(&output);
    assert!(
        text.contains("data.rationale Größe und \"quotes\", 日本\n"),
        "{text}"
    );
    assert!(
        text.ends_with("ok two words (confidence 0.9, risk low)\nanswered by scripted/talker0\n"),
        "{text}"
    );
}

#[test]
fn human_output_ends_with_warnings_repairs_and_the_model() {
    let stage = Stage::new();
    let input = input_file(&stage, &json!({"text": "two words", "tone": "dry"}));
    let data = json!({"rationale": "counted", "n": 2});
    let unsure = stage.script(
        "unsure",
        &json!([{"reply": {"ok": true, "meta": {"confidence": 0.2, "risk": "low"}, "data": data}}]),
    );
    let output = run(&stage, &[&unsure], &["counter", &input]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty(), "progress is for terminals: {output:?}");
    let (_, notes) = text.split_once("\n}\n").unwrap();
    for note in [
        "repaired: /meta/explain",
        "warning: W1002",
        "warning: W2001",
        "tone",
    ] {
        assert!(notes.contains(note), "{note}: {text}");
    }
    assert!(notes.ends_with("answered by scripted/unsure\n"), "{text}");

    let none = stage.script("none", &json!([{"reply": {"ok": true, "meta": {"confidence": 0.0, "risk": "low", "explain": "e"}, "data": data}}]));
    let output = run(&stage, &[&none], &["counter", "--args", "two words"]);
    assert!(
        stdout(&output).starts_with("no confidence e (confidence 0.0"),
        "{output:?}"
    );
}

#[test]
fn input_that_would_be_lost_is_refused() {
    let stage = Stage::new();
    let talker = stage.talker(0);
    let lost = run(&stage, &[&talker], &["counter", "--set", "txet=two words"]);
    assert_eq!(lost.status.code(), Some(2), "{lost:?}");
    let message = String::from_utf8_lossy(&lost.stderr).into_owned();
    assert!(
        message.contains("`txet`") && message.contains("did you mean `text`?"),
        "{message}"
    );
    fs::write(
        stage.path("modules/counter/prompt.md"),
        "Count the words.$MEDIA_INPUTS ${tone}\n",
    )
    .unwrap();
    let unused = run(&stage, &[&talker], &["counter", "--args", "two words", "--json"]);
    let envelope: Value = serde_json::from_slice(&unused.stdout).unwrap();
    assert_eq!(unused.status.code(), Some(1), "{envelope}");
    assert_eq!(envelope["error"]["code"], "E1002");
    assert_eq!(envelope["error"]["details"]["unused"], json!(["text"]));
    let message = "the input field text of `counter` reaches no request";
    assert_eq!(envelope["error"]["message"], message);
}

#[test]
fn only_successful_answer_exits_with_0() {
    let stage = Stage::new();
    let good = input_file(&stage, &json!({"text": "t"}));
    let no_rationale = stage.script("bad", &json!([{"reply": {"ok": true, "meta": {"confidence": 1, "risk": "none", "explain": "e"}, "data": {"n": 1}}}]));
    let prose = stage.script("prose", &json!([{"reply": "I would rather not."}]));
    let refused = stage.script("refused", &json!([{"status": 429}]));
    for (backend, code) in [(&no_rationale, "E3"), (&prose, "E1000"), (&refused, "E4002")] {
        for stream in [&["--json"][..], &["--json", "--stream"]] {
            let output = run(&stage, &[backend], &[&["counter", &good], stream].concat());
            assert_eq!(output.status.code(), Some(1), "{output:?}");
            let envelope = if stream.len() == 1 {
                serde_json::from_slice(&output.stdout).unwrap()
            } else {
                assemble(stdout(&output)).envelope
            };
            let actual = envelope["error"]["code"].as_str().unwrap();
            assert!(actual.starts_with(code), "{envelope}");
        }
    }
}

/// For any reply, `cogn check`, a run and a folded stream produce the same envelope.
#[test]
fn run_and_check_agree() {
    let stage = Stage::new();
    let input = input_file(&stage, &json!({"text": "t"}));
    let unsure =
        r#"{"ok":true,"meta":{"confidence":0.2,"risk":"low","explain":"e"},"data":{"rationale":"r","n":1}}"#;
    let replies = [
        String::from(unsure),
        format!("Here it is:\n```json\n{unsure}\n```"),
        unsure.replace("0.2", "1.7"),
        unsure.replace("\"r\"", "7"),
        String::from(
            r#"{"ok":false,"meta":{"confidence":0.1,"risk":"low","explain":"x"},"error":{"code":"E2004","message":"m"}}"#,
        ),
        String::from(r#"{"ok":false,"error":{"code":"INVALID_INPUT","message":"m"},"partial_data":{"n":1}}"#),
        String::from(
            "{\n  // a verdict\n  \"ok\": false, \"partial_data\": {\"rationale\": \"r\", \"n\": 1}}",
        ),
    ];
    for reply in replies {
        fs::write(stage.path("reply.txt"), &reply).unwrap();
        let checked = stage
            .cogn()
            .args(["check", "counter", "reply.txt", "--json"])
            .output()
            .unwrap();
        let checked: Value = serde_json::from_slice(&checked.stdout).unwrap();
        let backend = stage.script("one", &json!([{"reply": reply, "chunk_bytes": 5}]));
        let unstreamed = run(&stage, &[&backend], &["counter", &input, "--json"]);
        let unstreamed: Value = serde_json::from_slice(&unstreamed.stdout).unwrap();
        let streamed = run(&stage, &[&backend], &["counter", &input, "--json", "--stream"]);
        let folded = assemble(stdout(&streamed)).envelope;
        for mut envelope in [unstreamed, folded] {
            let meta = envelope["meta"].as_object_mut().unwrap();
            for fact in ["model", "processing_time_ms", "latency_ms"] {
                assert!(meta.shift_remove(fact).is_some(), "{fact}: {reply}");
            }
            envelope.as_object_mut().unwrap().shift_remove("_usage");
            assert_eq!(envelope, checked, "{reply}");
        }
    }
}

#[test]
fn invalid_input_is_refused_without_calling_a_backend() {
    let stage = Stage::new();
    let never = stage.script("never", &json!([]));
    let input = input_file(&stage, &json!({"txt": "t"}));
    for arguments in [&["--json"][..], &["--json", "--stream"]] {
        let output = run(&stage, &[&never], &[&["counter", &input], arguments].concat());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(envelope["error"]["code"], "E1002");
        assert_eq!(envelope["meta"]["confidence"], 0.0);
    }
}

#[test]
fn usage_error_exits_with_2_and_a_fix() {
    let stage = Stage::new();
    let talker = stage.talker(0);
    let input = input_file(&stage, &json!({"text": "t"}));
    for (backends, arguments) in [
        (&[][..], &["counter", &input][..]),
        (&[talker.as_str()], &["countre", &input]),
        (&[talker.as_str()], &["counter", "no-such-file.json"]),
        (&["scripted:no-such-script.yaml"], &["counter", &input]),
        (&["oracle"], &["counter", &input]),
    ] {
        let output = run(&stage, backends, arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty());
    }
}

#[test]
fn free_text_and_standard_input_are_accepted() {
    let stage = Stage::new();
    let script = stage.script("echo", &json!([{"match": "seven swans", "reply": REPLY}]));
    let output = run(
        &stage,
        &[&script],
        &["counter", "--args", "seven swans", "--json"],
    );
    // The text becomes the only required field, which the prompt shows.
    assert_eq!(output.status.code(), Some(0), "{output:?}");

    let mut command = stage.cogn();
    command.args(["run", "counter", "-", "--json", "--backend", &script]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(br#"{"text": "seven swans"}"#).unwrap();
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn next_backend_takes_over() {
    let stage = Stage::new();
    let input = input_file(&stage, &json!({"text": "t"}));
    let down = stage.script("down", &json!([{"status": 503}]));
    let dying = stage.script(
        "dying",
        &json!([{"reply": REPLY, "chunk_bytes": 9, "cut_after_bytes": 120}]),
    );
    let talker = stage.talker(0);
    let output = run(
        &stage,
        &[&down, &dying, &talker],
        &["counter", &input, "--stream", "--json"],
    );
    let text = stdout(&output);
    let envelope = assemble(text).envelope;
    assert_eq!(envelope["data"], data());
    assert_eq!(envelope["meta"]["model"], "scripted/talker0");
    assert!(
        text.contains(r#""type":"snapshot","field":"data","data":{}"#),
        "{text}"
    );
}

/// Each example with its script and its golden inputs: streamed and unstreamed runs produce the same
/// envelope.
#[test]
fn every_example_streams_its_answer() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut ran = 0;
    for entry in fs::read_dir(root.join("examples/scripted")).unwrap() {
        let script = entry.unwrap().path();
        let name = script.file_stem().unwrap().to_str().unwrap();
        let tests = root.join("examples/modules").join(name).join("tests");
        for case in fs::read_dir(&tests).into_iter().flatten() {
            let case = case.unwrap().path();
            if !case.to_str().unwrap().ends_with(".input.json") {
                continue;
            }
            let answer = |arguments: &[&str]| {
                let mut command = std::process::Command::new(binary());
                command.arg("--modules").arg(root.join("examples/modules"));
                command
                    .arg("run")
                    .arg(name)
                    .arg(&case)
                    .arg("--json")
                    .args(arguments);
                command
                    .arg("--backend")
                    .arg(format!("scripted:{}", script.display()));
                String::from_utf8(command.output().unwrap().stdout).unwrap()
            };
            let unstreamed: Value = serde_json::from_str(&answer(&[])).unwrap();
            let streamed = answer(&["--stream"]);
            let streamed = if streamed.contains(r#""streaming":true"#) {
                assemble(&streamed).envelope
            } else {
                serde_json::from_str(&streamed).unwrap()
            };
            if unstreamed["ok"] == true {
                assert_eq!(
                    stable_fields(streamed),
                    stable_fields(unstreamed),
                    "{}",
                    case.display()
                );
            } else {
                assert_eq!(streamed["error"], unstreamed["error"], "{}", case.display());
            }
            ran += 1;
        }
    }
    assert!(ran >= 13, "only {ran} cases ran");
}
