//! `cogn compose`: graphs of valid and invalid compositions.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

/// Writes a module that requires others into a separate folder.
pub(crate) fn write_module(root: &Path, name: &str, version: &str, more: &str, prompt: &str) {
    let folder = root.join(name);
    fs::create_dir_all(&folder).unwrap();
    let manifest = format!(
        "name: {name}\nversion: {version}\nresponsibility: to be composed\ntier: decision\nexcludes: [nothing]\n{more}"
    );
    fs::write(folder.join("module.yaml"), manifest).unwrap();
    fs::write(folder.join("prompt.md"), prompt).unwrap();
    let schema = r#"{"input": {"type": "object"}, "data": {"type": "object", "required": ["rationale"]}}"#;
    fs::write(folder.join("schema.json"), schema).unwrap();
}

pub(crate) fn cogn(root: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_cogn"))
        .args(args)
        .arg("--modules")
        .arg(root)
        .current_dir(root)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn library() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let plain = |name: &str| write_module(root, name, "1.2.0", "", "Answer.");
    for name in ["scan", "quick-scan", "words"] {
        plain(name);
    }
    let report = "composition:
  pattern: conditional
  requires:
    - {name: scan, version: ^1.0.0}
    - {name: deep-scan, version: '>=2.0.0', fallback: quick-scan}
    - {name: spell, optional: true}
  routing:
    - {condition: $.scan.meta.confidence < 0.5, next: deep-scan}
";
    write_module(
        root,
        "report",
        "2.0.0",
        report,
        "Sum up. @call:words($.scan.data)",
    );
    write_module(
        root,
        "a",
        "1.0.0",
        "composition: {requires: [{name: b}]}\n",
        "Answer.",
    );
    write_module(root, "b", "1.0.0", "", "Ask @call:a");
    write_module(
        root,
        "picky",
        "1.0.0",
        "composition: {requires: [{name: scan, version: ^2.0.0}]}\n",
        "Answer.",
    );
    folder
}

#[test]
fn composition_is_rendered_in_four_formats() {
    let folder = library();
    for format in ["tree", "mermaid", "dot", "json"] {
        let (code, drawn, _) = cogn(
            folder.path(),
            &["compose", "report", "--graph", "--format", format],
        );
        assert_eq!(code, Some(0), "{drawn}");
        insta::assert_snapshot!(format!("compose_{format}"), drawn);
    }
}

#[test]
fn invalid_composition_is_rendered_with_its_reason() {
    let folder = library();
    for (name, code, part) in [
        ("a", "E4004", "Circular dependency detected: a → b → a"),
        ("picky", "E4006", "version 1.2.0, but ^2.0.0 is required"),
    ] {
        let (exit, drawn, _) = cogn(folder.path(), &["compose", name]);
        assert_eq!(exit, Some(1), "{drawn}");
        assert!(drawn.contains(code) && drawn.contains(part), "{drawn}");
        let (exit, drawn, _) = cogn(folder.path(), &["compose", name, "--json"]);
        assert_eq!(exit, Some(1));
        let drawn: Value = serde_json::from_str(&drawn).unwrap();
        assert_eq!(drawn["errors"][0]["code"], code);
    }
}

#[test]
fn composed_examples_run_end_to_end() {
    let root = crate::examples::root().join("examples");
    for (name, input, fact, expected) in [
        ("change-gate", "injection", "/data/verdict", "person"),
        ("message-triage", "double-charge", "/data/team", "finance"),
    ] {
        let script = format!(
            "scripted:{}",
            root.join(format!("scripted/{name}.yaml")).display()
        );
        let input = root.join(format!("modules/{name}/tests/{input}.input.json"));
        let modules = root.join("modules");
        let args = [
            "run",
            name,
            input.to_str().unwrap(),
            "--backend",
            &script,
            "--json",
        ];
        let (code, out, err) = cogn(&modules, &args);
        assert_eq!(code, Some(0), "{out}{err}");
        let envelope: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(envelope.pointer(fact), Some(&Value::from(expected)), "{envelope}");
    }
}
