//! `cogn check`, tested with the binary, and with every saved reply of the examples.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Output;

use assert_cmd::Command;
use module::Code;
use serde_json::Value;

use crate::examples::root;

fn modules() -> PathBuf {
    root().join("examples/modules")
}

fn cogn(args: &[&str], stdin: &[u8]) -> Output {
    let mut command = Command::cargo_bin("cogn").unwrap();
    command.arg("--modules").arg(modules()).args(args);
    command.write_stdin(stdin).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Each reply is named after its expected result: `ok-...`, or the number of its error code. A model may also
/// have used the old name of the code.
#[test]
fn saved_replies_of_examples_match_their_names() {
    let mut replies = 0;
    for module in fs::read_dir(modules()).unwrap() {
        let module = module.unwrap().path();
        for reply in fs::read_dir(module.join("tests/replies")).unwrap() {
            let reply = reply.unwrap().path();
            let name = reply.file_name().unwrap().to_str().unwrap();
            let mut args = vec![
                "check",
                module.to_str().unwrap(),
                reply.to_str().unwrap(),
                "--json",
            ];
            let expected = if name.ends_with(".ndjson") {
                args.push("--chunks");
                "ok"
            } else {
                name.split_once('-').unwrap().0
            };
            let output = cogn(&args, b"");
            let value: Value = serde_json::from_slice(&output.stdout).unwrap();
            let found = match value["ok"].as_bool() {
                Some(true) => "ok",
                _ => value["error"]["code"].as_str().unwrap(),
            };
            let found = Code::find(found).map_or_else(|| String::from(found), |code| code.to_string());
            assert_eq!(found, expected, "{}: {value:#}", reply.display());
            let exit = if expected == "ok" { 0 } else { 1 };
            assert_eq!(output.status.code(), Some(exit), "{}", reply.display());
            replies += 1;
        }
    }
    assert!(replies > 30);
}

#[test]
fn human_output_shows_verdict_first() {
    let reply = br#"Here: {"ok": true, "meta": {"confidence": 0.97, "risk": " LOW", "explain": "clear"},
        "data": {"label": "bug", "rationale": "it says so"}, "extra": 1}"#;
    let output = cogn(&["check", "text-classifier"], reply);
    assert_eq!(output.status.code(), Some(1));
    let shown = text(&output.stdout);
    let expected = [
        "failed E3001 `/extra`: `extra` is not allowed here",
        "(confidence 0.0, risk high)\nhint: correct `/extra`",
        "\n  /extra `extra` is not allowed here",
        "\n{\n  \"label\": \"bug\",",
    ];
    for part in expected {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains('\u{1b}'), "{shown}");
    let good = text(reply).replace(", \"extra\": 1", "");
    let shown = text(&cogn(&["check", "text-classifier"], good.as_bytes()).stdout);
    assert!(
        shown.starts_with("ok clear (confidence 0.97, risk low)\n"),
        "{shown}"
    );
    assert!(
        shown.contains("\nrepaired: /meta/risk normalised: \" LOW\" -> \"low\"\n{\n"),
        "{shown}"
    );
}

#[test]
fn other_profile_carries_its_version() {
    let reply = modules().join("code-simplifier/tests/replies/ok-plain.json");
    let args = [
        "check",
        "code-simplifier",
        reply.to_str().unwrap(),
        "--envelope",
        "cep-2.2",
        "--json",
    ];
    let value: Value = serde_json::from_slice(&cogn(&args, b"").stdout).unwrap();
    assert_eq!(value["version"], "2.2");
    let args = ["check", "code-simplifier", "-", "--envelope", "1.0"];
    assert_eq!(cogn(&args, b"{}").status.code(), Some(2));
}

#[test]
fn usage_error_is_not_a_verdict() {
    for args in [
        vec!["check", "no-such-module"],
        vec!["check", "text-classifier", "no-such-file.json"],
        vec!["check"],
    ] {
        let output = cogn(&args, b"{}");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{args:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut file = fs::File::create(folder.path().join("module.yaml")).unwrap();
    file.write_all(b"name: [unclosed").unwrap();
    let output = cogn(&["check", folder.path().to_str().unwrap()], b"{}");
    assert_eq!(output.status.code(), Some(2));
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("error[M") && stderr.contains("does not load"),
        "{stderr}"
    );
}

#[test]
fn broken_stream_fails_even_with_valid_answer() {
    let good = fs::read_to_string(modules().join("image-analyzer/tests/replies/stream.ndjson")).unwrap();
    let broken = format!("not a chunk\n{good}");
    let output = cogn(
        &["check", "image-analyzer", "--chunks", "--json"],
        broken.as_bytes(),
    );
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{value:#}");
    assert_eq!(value["_violations"][0]["line"], 1);
    let cut: String = good.lines().take(2).map(|line| format!("{line}\n")).collect();
    let output = cogn(&["check", "image-analyzer", "--chunks", "--json"], cut.as_bytes());
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["error"]["code"], "E2010", "{value:#}");
}
