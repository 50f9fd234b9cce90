//! `cogn gate`, and gates on runs.

use std::fs;

use serde_json::Value;

use crate::compose::{cogn, write_module};

fn envelope(confidence: f64, risk: &str) -> String {
    format!(
        r#"{{"ok":true,"meta":{{"confidence":{confidence},"risk":"{risk}","explain":"e"}},"data":{{"rationale":"r"}}}}"#
    )
}

#[test]
fn saved_envelopes_are_passed_or_held_for_review() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let lines = [envelope(0.9, "low"), envelope(0.5, "low"), envelope(0.95, "high")];
    fs::write(path("all.jsonl"), lines.join("\n")).unwrap();
    fs::write(path("one.json"), envelope(0.9, "none")).unwrap();
    let failure = r#"[{"ok":false,"meta":{},"error":{"code":"E2004","message":"m"}}]"#;
    fs::write(path("failed.json"), failure).unwrap();
    let rule = ["--min-confidence", "0.8", "--max-risk", "medium"];
    let args = |more: &[&'static str]| [&["gate"][..], more, &rule].concat();
    let (code, out, err) = cogn(folder.path(), &args(&["all.jsonl", "--review", "held.jsonl"]));
    assert_eq!(
        (code, out.as_str()),
        (Some(1), format!("{}\n", lines[0]).as_str()),
        "{err}"
    );
    assert!(err.contains("all.jsonl:2: confidence 0.5 is below 0.8"), "{err}");
    let held = fs::read_to_string(path("held.jsonl")).unwrap();
    assert_eq!(held.lines().count(), 2);
    assert!(held.contains("risk high is above medium"), "{held}");
    let (code, _, _) = cogn(folder.path(), &args(&["one.json"]));
    assert_eq!(code, Some(0));
    let (code, out, _) = cogn(folder.path(), &args(&["one.json", "failed.json", "--json"]));
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, &report["passed"], &report["needs_review"]),
        (Some(1), &1.into(), &1.into())
    );
    assert_eq!(
        report["items"][0]["reasons"][0],
        "the answer is a failure (E2004)"
    );
    let (code, _, err) = cogn(folder.path(), &["gate", "one.json"]);
    assert_eq!(code, Some(2), "{err}");
}

#[test]
fn configured_gate_reasks_stronger_backend() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write_module(root, "m", "1.0.0", "", "Answer.");
    let script = |confidence| format!("- reply: '{}'\n", envelope(confidence, "low"));
    fs::write(root.join("weak.yaml"), script(0.4)).unwrap();
    fs::write(root.join("strong.yaml"), script(0.97)).unwrap();
    let backends = "[[backends]]
name = \"weak\"
kind = \"scripted\"
script = \"weak.yaml\"
priority = 10
[[backends]]
name = \"strong\"
kind = \"scripted\"
script = \"strong.yaml\"
[routing]
policy = \"priority\"
";
    for (gate, confidence, reviewed) in [
        ("", 0.4, false),
        ("[gate]\nmin_confidence = 0.8\n", 0.4, true),
        (
            "[gate]\nmin_confidence = 0.8\nbackend = \"strong\"\naction = \"rerun\"\n",
            0.97,
            false,
        ),
        (
            "[gate]\nmin_confidence = 0.3\n[gate.modules.m]\nmin_confidence = 0.9\n",
            0.4,
            true,
        ),
    ] {
        fs::write(root.join("cogn.toml"), format!("{backends}{gate}")).unwrap();
        let (code, out, err) = cogn(root, &["run", "m", "--json", "--config", "cogn.toml"]);
        assert_eq!(code, Some(0), "{err}");
        let answer: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(answer["meta"]["confidence"], confidence, "{gate}");
        assert_eq!(answer.get("_review").is_some(), reviewed, "{gate}: {answer}");
    }
}
