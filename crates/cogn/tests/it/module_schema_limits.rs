//! Schemas of modules beyond a limit of admission: on the command line, when a server starts, and at a reload.
//! Those of requests are in `vendor_schema`.

use std::fs;
use std::process::Stdio;

use serde_json::{Map, Value, json};

use crate::harness::Stage;
use crate::serve_reload::{refused, until};

/// Definitions of which each refers to the next one twice: the cost doubles with each of them.
fn doubling(length: usize) -> Value {
    let mut definitions = Map::new();
    for index in 0..length {
        let next = json!({"$ref": format!("#/$defs/d{}", index + 1)});
        definitions.insert(format!("d{index}"), json!({"allOf": [next, next]}));
    }
    definitions.insert(format!("d{length}"), json!({"type": "object"}));
    Value::Object(definitions)
}

/// Replaces one section of the module `counter`.
fn refuse(stage: &Stage, section: &str) {
    let path = stage.path("modules/counter/schema.json");
    let mut schema: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    schema["$defs"] = doubling(30);
    schema[section] = json!({"$ref": "#/$defs/d0"});
    fs::write(&path, schema.to_string()).unwrap();
}

fn output(stage: &Stage, words: &[&str]) -> (Option<i32>, String) {
    let mut command = stage.cogn();
    command.args(words).stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn command_line_names_the_limit() {
    for section in ["input", "data", "meta", "error"] {
        let stage = Stage::new();
        refuse(&stage, section);
        let backend = stage.talker(0);
        let input = r#"{"text": "two words"}"#;
        for words in [
            vec!["validate", "counter"],
            vec!["run", "counter", input, "--backend", &backend],
        ] {
            let (exit, text) = output(&stage, &words);
            assert_ne!(exit, Some(0), "{words:?}: {text}");
            assert!(
                exit.is_some() && text.contains("schema_cost_max"),
                "{words:?} {section}: {text}"
            );
        }
    }
}

#[test]
fn context_schemas_are_admitted() {
    let stage = Stage::new();
    let folder = stage.path("modules/counter");
    let manifest = fs::read_to_string(folder.join("module.yaml")).unwrap();
    let context = "context:\n  accepts:\n    - {type: notes, schema: notes.json}\n";
    fs::write(folder.join("module.yaml"), manifest + context).unwrap();
    let schema = json!({"$ref": "#/$defs/d0", "$defs": doubling(30)});
    fs::write(folder.join("notes.json"), schema.to_string()).unwrap();
    let words = ["run", "counter", "{}", "--backend", &stage.talker(0)];
    let (exit, text) = output(&stage, &words);
    assert!(
        exit != Some(0) && text.contains("schema_cost_max"),
        "{exit:?} {text}"
    );
}

#[tokio::test]
async fn reload_keeps_previous_version() {
    let stage = Stage::new();
    stage.configure("[server]\nreload_ms = 20\n");
    let server = stage.serve(&[&stage.talker(0)]);
    // The files are watched once a request is answered.
    assert!(!refused(&server).await);
    refuse(&stage, "data");
    until(async || refused(&server).await).await;
    // The previous version answers.
    let run = server
        .execute("counter", &json!({"text": "two words"}))
        .send()
        .await
        .unwrap();
    assert_eq!(run.status(), 200);
}

#[test]
fn servers_start_without_the_module_and_name_the_limit() {
    let stage = Stage::new();
    refuse(&stage, "data");
    // The end of its input ends it.
    let (exit, text) = output(&stage, &["mcp", "--backend", &stage.talker(0)]);
    assert_eq!(exit, Some(0), "{text}");
    assert!(
        text.contains("module skipped") && text.contains("counter") && text.contains("schema_cost_max"),
        "{text}"
    );
}
