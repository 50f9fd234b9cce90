//! `cogn test`: recording and replay.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::examples::root;
use crate::harness::{REPLY, Stage, binary};

/// The examples pass without a back-end. After an intended change of a request, `UPDATE_RECORDINGS=1 cargo
/// test -p cogn --test it golden` records them again from their scripts.
#[test]
fn examples_pass_offline() {
    if std::env::var_os("UPDATE_RECORDINGS").is_some() {
        record_examples();
    }
    let output = Command::new(binary())
        .current_dir(root())
        .args(["--modules", "examples/modules", "test", "--all", "--json"])
        .env_remove("COGNITIVE_MODULES_PATH")
        .env("HOME", "/nonexistent")
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    let folders = fs::read_dir(root().join("examples/modules")).unwrap().count();
    assert_eq!(report["summary"]["modules"], folders);
    for module in report["modules"].as_array().unwrap() {
        assert!(!module["cases"].as_array().unwrap().is_empty(), "{module}");
        assert!(module["coverage"]["exercised"].as_u64() > Some(0), "{module}");
    }
}

fn record_examples() {
    for entry in fs::read_dir(root().join("examples/modules")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let status = Command::new(binary())
            .current_dir(root())
            .args(["--modules", "examples/modules", "test", &name, "--record"])
            .args(["--backend", &format!("scripted:examples/scripted/{name}.yaml")])
            .status()
            .unwrap();
        assert!(status.success(), "{name}");
    }
}

/// A stage whose module `counter` has these tests, each with a different input.
fn stage(tests: &[(&str, Value)]) -> Stage {
    let stage = Stage::new();
    let folder = stage.path("modules/counter/tests");
    fs::create_dir_all(&folder).unwrap();
    for (name, expected) in tests {
        let input = json!({"text": format!("the text of {name}")});
        fs::write(folder.join(format!("{name}.input.json")), input.to_string()).unwrap();
        fs::write(folder.join(format!("{name}.expected.json")), expected.to_string()).unwrap();
    }
    stage
}

fn test(stage: &Stage, arguments: &[&str]) -> Output {
    stage
        .cogn()
        .args(["test", "counter"])
        .args(arguments)
        .output()
        .unwrap()
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

fn statuses(report: &Value) -> Vec<(String, String)> {
    let cases = report["modules"][0]["cases"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    cases
        .map(|case| (text(&case["name"]), text(&case["status"])))
        .collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn recording(stage: &Stage, name: &str) -> PathBuf {
    stage.path(&format!("modules/counter/tests/recordings/{name}.yaml"))
}

#[test]
fn test_is_recorded_once_and_replayed_without_backend() {
    let stage = stage(&[
        ("good", json!({"ok": true})),
        ("wrong", json!({"ok": true, "data": {"n": 4}})),
    ]);
    let unrecorded = test(&stage, &["--json"]);
    assert_eq!(unrecorded.status.code(), Some(1));
    assert_eq!(report(&unrecorded)["summary"]["unrecorded"], 2);

    let talker = stage.talker(0);
    let recorded = test(&stage, &["--record", "--backend", &talker, "--json"]);
    assert_eq!(recorded.status.code(), Some(1), "{recorded:?}");
    fs::remove_file(stage.path("talker0.yaml")).unwrap();
    let replayed = test(&stage, &["--json"]);
    for output in [&recorded, &replayed] {
        let both = [
            ("good".into(), "passed".into()),
            ("wrong".into(), "failed".into()),
        ];
        assert_eq!(statuses(&report(output)), both);
    }
    let problem = &report(&replayed)["modules"][0]["cases"][1]["problems"][0];
    assert_eq!(problem["pointer"], "/data/n");
    assert_eq!((&problem["expected"], &problem["actual"]), (&json!(4), &json!(3)));

    // Only one test is selected, and it passes.
    let filtered = test(&stage, &["-k", "counter/good"]);
    assert_eq!(filtered.status.code(), Some(0), "{filtered:?}");
    assert!(text(&filtered.stdout).contains("1 module, 1 test: 1 passed"));
}

/// A pair that the manifest does not list is not run, and both commands say so.
#[test]
fn unlisted_test_is_reported() {
    let stage = stage(&[("one", json!({"ok": true})), ("two", json!({"ok": true}))]);
    let manifest = stage.path("modules/counter/module.yaml");
    let head = fs::read_to_string(&manifest).unwrap();
    let list = "tests:\n  - tests/one.input.json -> tests/one.expected.json\n";
    fs::write(&manifest, format!("{head}{list}")).unwrap();
    let recorded = test(&stage, &["--record", "--backend", &stage.talker(0)]);
    let shown = text(&recorded.stdout);
    assert!(shown.contains("not run tests/two.input.json"), "{shown}");
    assert!(shown.contains("1 module, 1 test: 1 passed"), "{shown}");
    let printed = report(&test(&stage, &["--json"]));
    assert_eq!(printed["modules"][0]["unlisted"], json!(["tests/two.input.json"]));
    let validated = stage.cogn().args(["validate", "counter"]).output().unwrap();
    let shown = text(&validated.stdout);
    assert!(shown.contains("M4014"), "{shown}");
    assert_eq!(validated.status.code(), Some(0), "a warning: {shown}");
}

/// A stale test shows the recorded and the current request. No back-end is called, although one is
/// configured.
#[test]
fn changed_prompt_makes_test_stale() {
    let stage = stage(&[("good", json!({"ok": true}))]);
    let talker = stage.talker(0);
    test(&stage, &["--record", "--backend", &talker]);
    let tape = fs::read(recording(&stage, "good")).unwrap();
    fs::write(
        stage.path("modules/counter/prompt.md"),
        "Count the commas of: ${text}\n",
    )
    .unwrap();
    let stale = test(&stage, &["--backend", &talker]);
    assert_eq!(stale.status.code(), Some(1));
    let shown = text(&stale.stdout);
    for line in [
        "stale good",
        "Count the words of",
        "Count the commas of",
        "--record",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    assert_eq!(
        fs::read(recording(&stage, "good")).unwrap(),
        tape,
        "nothing is written"
    );
    let again = test(&stage, &["--record", "--backend", &talker]);
    assert_eq!(again.status.code(), Some(0), "{again:?}");
    assert_eq!(test(&stage, &[]).status.code(), Some(0));
}

#[test]
fn recording_twice_gives_the_same_file() {
    let stage = stage(&[("good", json!({"ok": true}))]);
    let talker = stage.talker(0);
    test(&stage, &["--record", "--backend", &talker]);
    let first = fs::read_to_string(recording(&stage, "good")).unwrap();
    test(&stage, &["--record", "--backend", &talker]);
    assert_eq!(fs::read_to_string(recording(&stage, "good")).unwrap(), first);
}

/// An unreachable back-end leaves the old recording unchanged.
#[test]
fn failed_call_is_not_recorded() {
    let stage = stage(&[("good", json!({"ok": true}))]);
    let talker = stage.talker(0);
    test(&stage, &["--record", "--backend", &talker]);
    let down = stage.script("down", &json!([{"status": 503}]));
    let output = test(&stage, &["--record", "--backend", &down, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(report(&output)["summary"]["broken"], 1, "{output:?}");
    assert_eq!(test(&stage, &[]).status.code(), Some(0));
}

#[test]
fn thresholds_determine_exit_code() {
    let stage = stage(&[
        ("one", json!({"ok": true})),
        ("three", json!({"ok": false})),
        (
            "two",
            json!({"_validate": {"confidence_min": 0.9, "rationale_min_length": 5}}),
        ),
    ]);
    let schema = stage.path("modules/counter/schema.json");
    let mut contract: Value = serde_json::from_slice(&fs::read(&schema).unwrap()).unwrap();
    contract["data"]["properties"]["never"] = json!({"type": "string"});
    fs::write(&schema, contract.to_string()).unwrap();
    let talker = stage.talker(0);
    test(&stage, &["--record", "--backend", &talker]);
    for (arguments, code) in [
        (&[][..], 1),
        (&["--min-pass", "66"], 0),
        (&["--min-pass", "67"], 1),
        (&["-k", "/one", "--min-coverage", "60"], 0),
        (&["-k", "/one", "--min-coverage", "80%"], 1),
        (&["--min-pass", "none"], 2),
        (&["-k", "no such test"], 2),
    ] {
        let output = test(&stage, arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
    }
    let report = report(&test(&stage, &["--json"]));
    assert_eq!(report["modules"][0]["coverage"]["missing"], json!(["never"]));
}

#[test]
fn junit_report_is_written() {
    let stage = stage(&[
        ("bad", json!({"ok": true, "data": {"rationale": "<&\">"}})),
        ("good", json!({"ok": true})),
    ]);
    let talker = stage.talker(0);
    let output = test(&stage, &["--record", "--backend", &talker, "--junit", "out.xml"]);
    assert_eq!(output.status.code(), Some(1));
    let xml = fs::read_to_string(stage.path("out.xml")).unwrap();
    for part in [
        r#"<testsuites name="cogn" tests="2" failures="1" errors="0">"#,
        r#"<testcase classname="counter" name="good""#,
        r#"<failure type="failed""#,
        "&lt;&amp;",
    ] {
        assert!(xml.contains(part), "{xml}");
    }
    assert!(well_formed(&stage.path("out.xml")), "{xml}");
}

/// Checked with an independent XML parser.
fn well_formed(path: &Path) -> bool {
    let program = "import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])";
    let status = Command::new("python3").args(["-c", program]).arg(path).status();
    status.unwrap().success()
}

#[test]
fn untestable_cases_are_reported() {
    let stage = stage(&[("good", json!({"ok": true}))]);
    let folder = stage.path("modules/counter/tests");
    fs::create_dir_all(folder.join("recordings")).unwrap();
    fs::write(folder.join("recordings/good.yaml"), "- {reply: x, reply_to: y}\n").unwrap();
    let broken = test(&stage, &["--json"]);
    assert_eq!(broken.status.code(), Some(1));
    assert_eq!(statuses(&report(&broken)), [("good".into(), "broken".into())]);
    // A hand-written script is also a recording: it answers any request.
    let script = json!([{"match": "the text of good", "reply": REPLY}]);
    fs::write(folder.join("recordings/good.yaml"), script.to_string()).unwrap();
    assert_eq!(test(&stage, &[]).status.code(), Some(0));

    fs::write(
        stage.path("modules/counter/module.yaml"),
        "name: counter\ntier: [\n",
    )
    .unwrap();
    let all = stage.cogn().args(["test", "--all", "--json"]).output().unwrap();
    assert_eq!(all.status.code(), Some(1), "{all:?}");
    assert!(
        report(&all)["modules"][0]["error"].is_string() || report(&all)["modules"][1]["error"].is_string()
    );
    let none = stage.cogn().args(["test", "waiter"]).output().unwrap();
    assert_eq!(none.status.code(), Some(2), "{none:?}");
    assert!(text(&none.stderr).contains("tests/NAME.input.json"));
}
