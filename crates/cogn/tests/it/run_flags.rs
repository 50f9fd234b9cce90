//! The flags of `cogn run`: input sources, output file, trace, timeout, interruption.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::examples::root;
use crate::harness::{REPLY, Stage, assemble, binary};

fn run(stage: &Stage, arguments: &[&str]) -> Output {
    stage.cogn().arg("run").args(arguments).output().unwrap()
}

fn code_of(output: &Output) -> Option<i32> {
    output.status.code()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn single_fields_form_an_input() {
    let stage = Stage::new();
    let swans = stage.script("swans", &json!([{"match": "seven swans", "reply": REPLY}]));
    let good = run(
        &stage,
        &["counter", "--set", "text=seven swans", "--backend", &swans],
    );
    assert_eq!(code_of(&good), Some(0), "{good:?}");
    // A single field overrides the input file.
    fs::write(stage.path("input.json"), r#"{"text": "one hen"}"#).unwrap();
    let over = run(
        &stage,
        &[
            "counter",
            "input.json",
            "--set",
            "text=seven swans",
            "--backend",
            &swans,
        ],
    );
    assert_eq!(code_of(&over), Some(0), "{over:?}");
    let wrong = run(&stage, &["counter", "--set", "text", "--backend", &swans]);
    assert_eq!(code_of(&wrong), Some(2));
    assert!(stderr(&wrong).contains("key=value"), "{wrong:?}");
}

/// The message names the back-end, its address and the reason, without the rest of its URL.
#[test]
fn unreachable_back_end_is_named_with_its_address() {
    let stage = Stage::new();
    let config = stage.config(
        "[routing]\nretry = { same_backend_max = 0 }\n\
         [[backends]]\nname = \"dead\"\nkind = \"openai\"\nbase_url = \"http://user:word@127.0.0.1:1/v1/secret\"\nmodel = \"m\"\n",
    );
    let failed = run(
        &stage,
        &["counter", "--set", "text=x", "--config", &config, "--json"],
    );
    assert_eq!(code_of(&failed), Some(1), "{failed:?}");
    let envelope: Value = serde_json::from_slice(&failed.stdout).unwrap();
    assert_eq!(envelope["error"]["code"], "E4001");
    let message = envelope["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("back-end `dead` at 127.0.0.1:1: "),
        "{message}"
    );
    assert!(
        !message.contains("word") && !message.contains("secret"),
        "{message}"
    );
}

/// An image is assigned to the media field of the schema; for a module without one it is an error.
#[test]
fn media_is_assigned_to_schema_field() {
    let example = |module: &str, arguments: &[&str]| {
        Command::new(binary())
            .current_dir(root())
            .args(["--modules", "examples/modules", "run", module, "--json"])
            .args(["--backend", &format!("scripted:examples/scripted/{module}.yaml")])
            .args(arguments)
            .output()
            .unwrap()
    };
    let picture = "examples/modules/image-analyzer/assets/sunset.png";
    let seen = example("image-analyzer", &["--image", picture]);
    assert_eq!(code_of(&seen), Some(0), "{seen:?}");
    let transcribed = example(
        "audio-transcriber",
        &["--audio", "examples/modules/audio-transcriber/assets/meeting.wav"],
    );
    assert_eq!(code_of(&transcribed), Some(0), "{transcribed:?}");
    for (arguments, said) in [
        (["--audio", picture], "accepts no audio; it accepts text, image"),
        (["--image", "no-such-file.png"], "no-such-file.png"),
        (["--image", "examples"], "is not a file"),
    ] {
        let refused = example("image-analyzer", &arguments);
        assert_eq!(code_of(&refused), Some(2), "{refused:?}");
        assert!(stderr(&refused).contains(said), "{refused:?}");
    }
}

#[test]
fn envelope_is_written_to_output_file() {
    let stage = Stage::new();
    let talker = stage.talker(0);
    for stream in [&[][..], &["--stream"]] {
        let path = stage.path("answers.json");
        fs::remove_file(&path).ok();
        let arguments = [
            "counter",
            "--set",
            "text=t",
            "--json",
            "-o",
            "answers.json",
            "--backend",
            &talker,
        ];
        let output = run(&stage, &[&arguments, stream].concat());
        assert_eq!(code_of(&output), Some(0), "{output:?}");
        assert_eq!(output.stdout.is_empty(), stream.is_empty());
        let envelope: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(envelope["ok"], true);
    }
    let nowhere = run(
        &stage,
        &[
            "counter",
            "--set",
            "text=t",
            "-o",
            "no/such/folder.json",
            "--backend",
            &talker,
        ],
    );
    assert_eq!(code_of(&nowhere), Some(2), "{nowhere:?}");
}

#[test]
fn trace_records_events_with_times() {
    let stage = Stage::new();
    let talker = stage.talker(0);
    let output = run(
        &stage,
        &[
            "counter",
            "--set",
            "text=t",
            "--stream",
            "--json",
            "--trace",
            "trace.json",
            "--backend",
            &talker,
        ],
    );
    assert_eq!(code_of(&output), Some(0), "{output:?}");
    let trace: Value = serde_json::from_slice(&fs::read(stage.path("trace.json")).unwrap()).unwrap();
    let events = trace["events"].as_array().unwrap();
    let seen: Vec<String> = events.iter().map(|event| event["event"].to_string()).collect();
    let printed: Vec<String> = std::str::from_utf8(&output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap().to_string())
        .collect();
    assert_eq!(seen, printed);
    let times: Vec<_> = events
        .iter()
        .map(|event| event["at_ms"].as_u64().unwrap())
        .collect();
    assert!(times.is_sorted(), "{times:?}");
    assert_eq!(trace["envelope"]["ok"], true);
}

#[test]
fn timeout_is_enforced_and_reported() {
    let stage = Stage::new();
    let slow = stage.script(
        "slow",
        &json!([{"reply": REPLY, "chunk_bytes": 4, "delay_ms": 600_000}]),
    );
    for (stream, code) in [(&[][..], "E2002"), (&["--stream"], "E2011")] {
        let arguments = [
            "counter",
            "--set",
            "text=t",
            "--json",
            "--timeout",
            "20ms",
            "--backend",
            &slow,
        ];
        let output = run(&stage, &[&arguments, stream].concat());
        assert_eq!(code_of(&output), Some(1), "{output:?}");
        let envelope = if stream.is_empty() {
            serde_json::from_slice(&output.stdout).unwrap()
        } else {
            assemble(std::str::from_utf8(&output.stdout).unwrap()).envelope
        };
        assert_eq!(envelope["error"]["code"], code, "{envelope}");
    }
    let wrong = run(&stage, &["counter", "--timeout", "soon", "--backend", &slow]);
    assert_eq!(code_of(&wrong), Some(2));
}

/// Ctrl-C cancels the back-end call; the partial answer becomes an envelope, also in the output file.
#[cfg(unix)]
#[test]
fn interrupted_run_ends_in_an_envelope() {
    let stage = Stage::new();
    let events = json!([
        {"type": "block_delta", "index": 0, "delta": {"kind": "text", "text": "{\"rationale\": \"half an ans"}},
    ]);
    let mut pause = events.as_array().unwrap().clone();
    pause.resize(10_000, pause[0].clone());
    let slow = stage.script("slow", &json!([{"events": pause, "delay_ms": 30}]));
    let mut child = stage
        .cogn()
        .args([
            "run",
            "counter",
            "--set",
            "text=t",
            "--stream",
            "--json",
            "-o",
            "answer.json",
        ])
        .args(["--backend", &slow])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains(r#""chunk""#) {
        line.clear();
        assert_ne!(lines.read_line(&mut line).unwrap(), 0, "no chunk came");
    }
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{rest}");
    assert!(rest.contains("E2010"), "{rest}");
    let envelope: Value = serde_json::from_slice(&fs::read(stage.path("answer.json")).unwrap()).unwrap();
    assert_eq!(envelope["error"]["code"], "E2010");
    assert_eq!(left_over(&stage.path(".")), Vec::<PathBuf>::new());
}

fn left_over(folder: &std::path::Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "part"))
        .collect()
}
