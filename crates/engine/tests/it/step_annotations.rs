//! Warnings, reviews and usage of steps are part of the composition's envelope; and what a step receives of
//! the result before it.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::gate::{GateAction, GateRule, Gates};
use engine::{RunMode, Settings};
use module::Module;
use module::stream::assemble_ndjson;
use serde_json::{Value, json};

use crate::composed::{answer, engine, events, module, says, script};

/// An answer with a warning and, if given, its usage.
fn told(pattern: &str, remark: &str, usage: Option<(u64, u64)>) -> String {
    let usage = usage.map_or_else(String::new, |(input, output)| {
        format!("    - {{type: usage, usage: {{input_tokens: {input}, output_tokens: {output}}}}}\n")
    });
    format!(
        "- match: '{pattern}'\n  events:\n    - {{type: warning, warning: {{code: adapted, message: {remark}}}}}\n    \
         - {{type: block_start, index: 0, block: {{kind: text}}}}\n    \
         - {{type: block_delta, index: 0, delta: {{kind: text, text: '{{\"ok\":true,\"meta\":{{\"confidence\":0.9,\"risk\":\"low\",\"explain\":\"e\"}},\"data\":{{\"rationale\":\"r\"}}}}'}}}}\n    \
         - {{type: block_end, index: 0}}\n{usage}    - {{type: finish, reason: stop}}\n"
    )
}

fn library() -> Vec<(String, Arc<Module>)> {
    let both = "response: {mode: both, buffer_size: 0}\n";
    vec![
        module("a", "", "I am A"),
        module("b", "", "I am B"),
        module(
            "inner",
            "composition: {requires: [{name: a}]}\n",
            "Inner {{a.data}}",
        ),
        module(
            "outer",
            &format!("{both}composition: {{requires: [{{name: inner}}, {{name: b}}]}}\n"),
            "Outer {{inner.data}} {{b.data}}",
        ),
    ]
}

#[tokio::test]
async fn step_warnings_have_the_step_path() {
    let yaml = [
        told("Outer", "own", Some((1, 2))),
        told("Inner", "middle", Some((10, 20))),
        told("I am A", "deep", Some((100, 200))),
        told("I am B", "beside", Some((1_000, 2_000))),
    ];
    let engine = engine(library(), vec![script(&yaml.concat())], Settings::default());
    let envelope = answer(&engine, "outer", json!({})).await;
    assert_eq!(envelope["ok"], true, "{envelope}");
    let entry = |warning: &Value| {
        let text = |key: &str| warning[key].as_str().unwrap_or("-").to_owned();
        format!("{} {} {}", text("code"), text("step"), text("message"))
    };
    let mut warnings: Vec<String> = envelope["_warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(entry)
        .collect();
    warnings.sort();
    assert_eq!(
        warnings,
        [
            "W4001 - own",
            "W4001 b beside",
            "W4001 inner middle",
            "W4001 inner/a deep"
        ]
    );
    // The usage of the run and of its steps.
    assert_eq!(
        envelope["_usage"],
        json!({"input_tokens": 1_111, "output_tokens": 2_222, "total_tokens": 3_333})
    );
    let events = events(&engine, "outer", json!({}), RunMode::Stream)
        .await
        .unwrap();
    let lines: Vec<&str> = events.iter().map(|event| &*event.body).collect();
    let assembled = assemble_ndjson(lines.join("\n").as_bytes());
    assert!(assembled.violations.is_empty(), "{:?}", assembled.violations);
    assert_eq!(assembled.envelope["_warnings"].as_array().map(Vec::len), Some(4));
}

#[tokio::test]
async fn usage_sum_with_an_unknown_part_is_unknown() {
    let yaml = [told("Inner", "own", Some((1, 2))), told("I am A", "deep", None)];
    let engine = engine(library(), vec![script(&yaml.concat())], Settings::default());
    let envelope = answer(&engine, "inner", json!({})).await;
    assert_eq!(
        envelope["_usage"],
        json!({"input_tokens": null, "output_tokens": null, "total_tokens": null})
    );
}

#[tokio::test]
async fn step_review_requires_review_of_the_composition() {
    let rule = GateRule {
        min_confidence: Some(0.8),
        action: GateAction::Review,
        ..GateRule::default()
    };
    let settings = Settings {
        gates: Gates {
            general: None,
            modules: BTreeMap::from([(String::from("a"), rule)]),
        },
        ..Settings::default()
    };
    let yaml = [
        says("I am A", 0.4, r#""rationale":"weak""#),
        says("I am B", 0.9, r#""rationale":"r""#),
        says("Inner", 0.9, r#""rationale":"r""#),
        says("Outer", 0.9, r#""rationale":"r""#),
    ];
    let engine = engine(library(), vec![script(&yaml.concat())], settings);
    let envelope = answer(&engine, "outer", json!({})).await;
    assert_eq!(
        envelope["_review"],
        json!({"needed": true, "reasons": ["step inner: step a: confidence 0.4 is below 0.8"]}),
        "{envelope}"
    );
}

#[tokio::test]
async fn step_receives_the_previous_result_on_request() {
    let accepts = "context: {accepts: [{type: previous_result, required: true}]}\n";
    let named = "context: {accepts: [{type: previous_result, from_module: a}]}\n";
    // The dataflow does not contain the results, so only the context can pass them on.
    let flow = "composition:
  requires: [{name: a}, {name: b}, {name: last}, {name: picky}]
  dataflow:
    - {from: input, to: a}
    - {from: a, to: b, mapping: {n: '$.meta.risk'}}
    - {from: b, to: last, mapping: {n: '$.meta.risk'}}
    - {from: last, to: picky, mapping: {n: '$.meta.risk'}}
";
    let modules = vec![
        module("a", "", "I am A"),
        module("b", "", "I am B"),
        module("last", accepts, "I am last $INPUT"),
        module("picky", named, "I am picky $INPUT"),
        module(
            "own",
            flow,
            "Sum up {{last.data.rationale}} {{picky.data.rationale}}",
        ),
    ];
    let yaml = [
        says("Sum up heard b heard a", 0.9, r#""rationale":"done""#),
        says("I am A", 0.9, r#""rationale":"by a""#),
        says("I am B", 0.9, r#""rationale":"by b""#),
        says("by b", 0.9, r#""rationale":"heard b""#),
        says("by a", 0.9, r#""rationale":"heard a""#),
    ];
    let engine = engine(modules, vec![script(&yaml.concat())], Settings::default());
    let envelope = answer(&engine, "own", json!({})).await;
    assert_eq!(envelope["data"]["rationale"], "done", "{envelope}");
}
