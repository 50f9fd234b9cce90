//! `cogn run --record` and `--replay`, tested with the binary.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use serde_json::{Value, json};

use crate::harness::{REPLY, Stage, assemble};

fn run(stage: &Stage, arguments: &[&str]) -> Output {
    let mut command = stage.cogn();
    command.arg("run").args(arguments).env("COUNTER_API_KEY", KEY);
    command.output().unwrap()
}

const KEY: &str = "ck-live-9f8e7d6c5b4a";

fn envelope(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

fn recordings(stage: &Stage) -> Vec<PathBuf> {
    let entries = fs::read_dir(stage.path("tapes")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn stable_fields(mut envelope: Value) -> Value {
    for field in ["processing_time_ms", "latency_ms", "trace_id"] {
        envelope["meta"].as_object_mut().unwrap().shift_remove(field);
    }
    envelope
}

#[test]
fn recorded_run_is_replayed_whole_and_streamed() {
    let stage = Stage::new();
    let talker = stage.talker(0);
    let common = ["counter", "--set", "text=two words", "--json"];
    let live = run(
        &stage,
        &[&common[..], &["--record", "tapes", "--backend", &talker]].concat(),
    );
    assert_eq!(live.status.code(), Some(0), "{live:?}");
    assert_eq!(recordings(&stage).len(), 1);
    fs::remove_file(stage.path("talker0.yaml")).unwrap();

    let replayed = run(&stage, &[&common[..], &["--replay", "tapes"]].concat());
    assert_eq!(replayed.status.code(), Some(0), "{replayed:?}");
    assert_eq!(stable_fields(envelope(&replayed)), stable_fields(envelope(&live)));
    let file = recordings(&stage)[0].display().to_string();
    let streamed = run(&stage, &[&common[..], &["--replay", &file, "--stream"]].concat());
    let folded = assemble(std::str::from_utf8(&streamed.stdout).unwrap()).envelope;
    assert_eq!(folded["data"], envelope(&live)["data"]);

    // The same run is written to the same file, another run to another one.
    let talker = stage.talker(0);
    run(
        &stage,
        &[&common[..], &["--record", "tapes", "--backend", &talker]].concat(),
    );
    assert_eq!(recordings(&stage).len(), 1);
    run(
        &stage,
        &[
            "counter",
            "--set",
            "text=three",
            "--record",
            "tapes",
            "--backend",
            &talker,
        ],
    );
    assert_eq!(recordings(&stage).len(), 2);
}

/// A changed prompt is a stale recording, and the change is shown; configured back-ends are not called.
#[test]
fn changed_request_is_stale() {
    let stage = Stage::new();
    let talker = stage.talker(0);
    run(
        &stage,
        &[
            "counter",
            "--set",
            "text=t",
            "--record",
            "tapes",
            "--backend",
            &talker,
        ],
    );
    let prompt = stage.path("modules/counter/prompt.md");
    fs::write(&prompt, "Count the letters of: ${text}\n").unwrap();
    fs::write(
        stage.path("cogn.toml"),
        "[[backends]]\nname = \"ready\"\nkind = \"scripted\"\nscript = \"talker0.yaml\"\n",
    )
    .unwrap();
    let stale = run(
        &stage,
        &["counter", "--set", "text=t", "--json", "--replay", "tapes"],
    );
    assert_eq!(stale.status.code(), Some(1), "{stale:?}");
    let envelope = envelope(&stale);
    assert_eq!(envelope["error"]["code"], "E4001");
    let message = envelope["error"]["message"].as_str().unwrap();
    assert!(message.contains("stale"), "{message}");
    for line in ["-", "+"].iter().zip(["words", "letters"]) {
        let (sign, word) = line;
        let shown = message
            .lines()
            .any(|line| line.starts_with(sign) && line.contains(word));
        assert!(shown, "{message}");
    }
}

/// Neither an echoed header nor the input puts a key into a recording.
#[test]
fn recording_contains_no_key() {
    let stage = Stage::new();
    let reply = REPLY.replace("two words", &format!("you said {KEY}"));
    let echo = stage.script("echo", &json!([{"reply": reply}]));
    let text = format!("text=my key is {KEY}");
    let output = run(
        &stage,
        &["counter", "--set", &text, "--record", "tapes", "--backend", &echo],
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let tape = fs::read_to_string(&recordings(&stage)[0]).unwrap();
    assert!(tape.contains("[redacted]") && !tape.contains(KEY), "{tape}");
    // It still answers the original request.
    let replayed = run(&stage, &["counter", "--set", &text, "--replay", "tapes"]);
    assert_eq!(replayed.status.code(), Some(0), "{replayed:?}");
}

#[test]
fn replay_without_recording_is_an_error() {
    let stage = Stage::new();
    fs::create_dir(stage.path("empty")).unwrap();
    fs::write(stage.path("broken.yaml"), "- {reply: a, events: []}").unwrap();
    for tape in ["empty", "missing", "broken.yaml"] {
        let output = run(&stage, &["counter", "--set", "text=t", "--replay", tape]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
    let both = run(&stage, &["counter", "--replay", "empty", "--record", "empty"]);
    assert_eq!(both.status.code(), Some(2));
}

/// A run that the gate reasked is replayed with the final answer, even if no gate is configured for the
/// replay.
#[test]
fn replay_of_reasked_run_returns_final_answer() {
    let stage = Stage::new();
    let unsure = REPLY.replace("0.9", "0.3").replace("two words", "a guess");
    let weak = stage.script("weak", &json!([{"reply": unsure}]));
    let strong = stage.script("strong", &json!([{"reply": REPLY}]));
    let file = |backend: &str| backend.replace("scripted:", "");
    let config = stage.config(&format!(
        "[[backends]]\nname = \"weak\"\nkind = \"scripted\"\nscript = \"{}\"\npriority = 2\n\
         [[backends]]\nname = \"strong\"\nkind = \"scripted\"\nscript = \"{}\"\npriority = 1\n\
         [gate]\nmin_confidence = 0.8\nbackend = \"strong\"\naction = \"rerun\"\n",
        file(&weak),
        file(&strong)
    ));
    let common = ["counter", "--set", "text=two words", "--json"];
    let live = run(
        &stage,
        &[&common[..], &["--record", "tapes", "--config", &config]].concat(),
    );
    assert_eq!(live.status.code(), Some(0), "{live:?}");
    assert_eq!(envelope(&live)["meta"]["explain"], "two words", "{live:?}");
    let replayed = run(&stage, &[&common[..], &["--replay", "tapes"]].concat());
    assert_eq!(
        stable_fields(envelope(&replayed))["data"],
        envelope(&live)["data"]
    );
    assert_eq!(
        envelope(&replayed)["meta"]["explain"],
        "two words",
        "{replayed:?}"
    );
    assert_eq!(envelope(&replayed).get("_review"), None);
}
