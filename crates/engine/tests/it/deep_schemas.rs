//! Contracts that are applied by deep recursion: the stack of a worker of the runtime, which is that of the
//! test's thread here, would overflow, and the process would end.

use std::sync::Arc;

use module::check::check_runnable;
use module::{FileMap, Module};
use serde_json::{Value, json};

use crate::composed::{answer, engine, module, script};

/// Schemas in a chain that apply to each value, and levels of the value.
const CHAIN: usize = 28;
const DEPTH: usize = 110;

/// `#/$defs/d0` accepts an object whose members match `#/$defs/d0`, through a chain of references.
fn definitions() -> Value {
    let next = |index: usize| json!({"allOf": [{"$ref": format!("#/$defs/d{}", (index + 1) % CHAIN)}]});
    let mut all = json!({});
    for index in 0..CHAIN - 1 {
        all[format!("d{index}")] = next(index);
    }
    all[format!("d{}", CHAIN - 1)] = json!({"additionalProperties": {"$ref": "#/$defs/d0"}});
    all
}

fn deep() -> Value {
    (0..DEPTH).fold(json!(1), |value, _| json!({"a": value}))
}

fn with_schema(name: &str, manifest: &str, prompt: &str, schema: &Value) -> (String, Arc<Module>) {
    let manifest = format!(
        "name: {name}\nversion: 1.0.0\nresponsibility: r\ntier: decision\nexcludes: [guessing]\n{manifest}"
    );
    let files: FileMap = [
        ("module.yaml", manifest.as_str()),
        ("prompt.md", prompt),
        ("schema.json", schema.to_string().as_str()),
    ]
    .into_iter()
    .collect();
    let load = move || check_runnable(&files);
    // Loading compiles the schemas, which takes a large stack too.
    let thread = std::thread::Builder::new().stack_size(engine::limits::SCHEMA_STACK_BYTES);
    let loaded = thread.spawn(load).unwrap().join().unwrap();
    assert!(loaded.report.is_empty(), "{:?}", loaded.report);
    (String::from(name), Arc::new(loaded.module.unwrap()))
}

fn modules() -> Vec<(String, Arc<Module>)> {
    let tree = json!({"$ref": "#/$defs/d0"});
    let text =
        json!({"type": "object", "properties": {"rationale": {"type": "string"}}, "required": ["rationale"]});
    let input = json!({"$defs": definitions(), "input": {"properties": {"tree": tree}}, "data": text});
    let mut data = text;
    data["properties"]["tree"] = tree;
    let data = json!({"$defs": definitions(), "input": {"type": "object"}, "data": data});
    let flow = "composition:
  requires: [{name: input}]
  dataflow:
    - {from: input, to: input}
    - {from: input, to: output}
";
    vec![
        with_schema("input", "", "Read the input.", &input),
        with_schema("data", "", "Write the data.", &data),
        module("step", flow, "Unused."),
    ]
}

fn replies() -> String {
    let meta = json!({"confidence": 0.9, "risk": "low", "explain": "e"});
    let data = json!({"rationale": "r", "tree": deep()});
    json!([{"reply": json!({"ok": true, "meta": meta, "data": data}).to_string()}]).to_string()
}

#[tokio::test]
async fn deep_contracts_are_applied_outside_the_workers() {
    let engine = engine(modules(), vec![script(&replies())], engine::Settings::default());
    for name in ["input", "data", "step"] {
        let answer = answer(&engine, name, json!({"rationale": "r", "tree": deep()})).await;
        assert_eq!(answer["ok"], true, "{name}: {}", answer["error"]);
    }
    let edited = engine.modules().get("data").unwrap().clone();
    let data = json!({"rationale": "r", "tree": deep()})
        .as_object()
        .unwrap()
        .clone();
    let check = move || engine::review::admit_edit(&edited, None, &data);
    engine.schema_threads().check(check).await.unwrap();
}
