//! `cogn conformance` on vector files: levels, exit codes and folder traversal.

use std::fs;
use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use serde_json::{Value, json};
use tempfile::TempDir;

fn cogn(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cogn"))
        .arg("conformance")
        .args(args)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn minimal() -> Value {
    json!({
        "$test": {"name": "minimal", "expects": "accept", "conformance_level": 1},
        "envelope": {
            "ok": true,
            "meta": {"confidence": 0.5, "risk": "low", "explain": "short"},
            "data": {"rationale": "long"},
        },
    })
}

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn folder(files: &[(&str, Value)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, value) in files {
        write(folder.path(), path, &value.to_string());
    }
    folder
}

fn run(folder: &TempDir) -> Output {
    cogn(&["--vectors", folder.path().to_str().unwrap()])
}

#[test]
fn own_vectors_reach_level_four() {
    let output = cogn(&[]);
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{stdout}");
    for level in 1..=4 {
        assert!(stdout.contains(&format!("level {level}: ")), "{stdout}");
    }
    assert!(stdout.ends_with("declared level: 4\n"), "{stdout}");
}

#[test]
fn lower_level_runs_and_declares_fewer_levels() {
    let output = cogn(&["--level", "2", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["declares_level"], 2);
    assert_eq!(report["source"], "embedded");
    assert_eq!(report["levels"].as_array().unwrap().len(), 2);
    assert_eq!(cogn(&["--level", "5"]).status.code(), Some(2));
}

#[test]
fn folder_is_walked_and_failures_are_named() {
    let mut wrong = minimal();
    wrong["$test"]["expects"] = json!("reject");
    let folder = folder(&[("a/valid/good.json", minimal()), ("b/deep/er/bad.json", wrong)]);
    let output = run(&folder);
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stdout.contains("FAIL b/deep/er/bad.json: expected to reject, accepted"),
        "{stdout}"
    );
    assert!(stdout.contains("level 1: 1 of 2 passed, 1 failed"), "{stdout}");
    assert!(stdout.ends_with("declared level: none\n"), "{stdout}");
}

#[test]
fn skipped_vectors_are_reported() {
    let registry = json!({"$test": {"expects": "accept", "conformance_level": 1}, "registry": {}});
    let mut odd = minimal();
    odd["setup"] = json!("windows");
    let folder = folder(&[
        ("registry.json", registry),
        ("odd.json", odd),
        ("fixture.json", json!({"type": "object"})),
    ]);
    write(folder.path(), "broken.json", "{");
    write(folder.path(), "README.md", "not looked at");
    let output = run(&folder);
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{stdout}");
    for line in [
        "not run registry.json: kind `registry` is not supported at this level yet",
        "problem odd.json: unknown key `setup`",
        "problem broken.json: is not JSON",
        "ignored fixture.json: not a vector",
    ] {
        assert!(stdout.contains(line), "{line}\n{stdout}");
    }
    assert!(!stdout.contains("README"));
}

#[test]
fn empty_folder_and_missing_folder_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&folder);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no vectors in"));
    let output = cogn(&["--vectors", "does/not/exist"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn single_file_is_accepted() {
    let folder = folder(&[("x.json", minimal())]);
    let output = cogn(&["--vectors", folder.path().join("x.json").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).ends_with("declared level: 1\n"));
}

#[cfg(unix)]
#[test]
fn linked_folder_is_not_followed() {
    let folder = folder(&[("x.json", minimal())]);
    std::os::unix::fs::symlink(folder.path(), folder.path().join("again")).unwrap();
    let output = run(&folder);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("level 1: 1 of 1 passed"));
}
