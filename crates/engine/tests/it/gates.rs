//! Gates and reasks on real runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::gate::{GateAction, GateRule, Gates};
use engine::port::{EventKind, Upstream};
use engine::{RunMode, Settings};
use module::envelope::Risk;
use module::stream::assemble_ndjson;
use providers::ScriptedUpstream;
use providers::scripted::Script;
use serde_json::{Value, json};

use crate::composed::{answer, engine, events, module, says};

fn named(name: &str, yaml: &str) -> Arc<dyn Upstream> {
    Arc::new(ScriptedUpstream::new(name, Script::parse(yaml).unwrap()))
}

fn settings(action: GateAction) -> Settings {
    let rule = GateRule {
        min_confidence: Some(0.8),
        max_risk: Some(Risk::Medium),
        action,
    };
    let gates = Gates {
        general: Some(rule),
        modules: BTreeMap::from([(String::from("free"), GateRule::default())]),
    };
    Settings {
        gates,
        ..Settings::default()
    }
}

fn unsure() -> String {
    says("", 0.4, r#""rationale":"weak""#)
}

#[tokio::test]
async fn low_confidence_requires_review_without_a_stronger_back_end() {
    let modules = vec![module("m", "", "p"), module("free", "", "p")];
    let engine = engine(
        modules,
        vec![named("weak", &unsure())],
        settings(GateAction::Review),
    );
    let envelope = answer(&engine, "m", json!({})).await;
    assert_eq!(envelope["ok"], true);
    assert_eq!(
        envelope["_review"]["reasons"],
        json!(["confidence 0.4 is below 0.8"])
    );
    let envelope = answer(&engine, "free", json!({})).await;
    assert_eq!(envelope.get("_review"), None);
}

#[tokio::test]
async fn low_confidence_is_reasked_on_the_stronger_back_end() {
    let rerun = GateAction::Rerun {
        backend: String::from("strong"),
    };
    for (confidence, reviewed) in [(0.95, false), (0.5, true)] {
        let strong = says("", confidence, r#""rationale":"strong""#);
        let modules = vec![module("m", "response: {mode: both, buffer_size: 0}\n", "p")];
        let upstreams = vec![named("weak", &unsure()), named("strong", &strong)];
        let engine = engine(modules, upstreams, settings(rerun.clone()));
        let events = events(&engine, "m", json!({}), RunMode::Stream).await.unwrap();
        let lines: Vec<&str> = events.iter().map(|event| &*event.body).collect();
        let assembled = assemble_ndjson(lines.join("\n").as_bytes());
        assert!(assembled.violations.is_empty(), "{:?}", assembled.violations);
        assert_eq!(assembled.envelope["data"]["rationale"], "strong");
        assert_eq!(
            assembled.envelope.get("_review").is_some(),
            reviewed,
            "{}",
            assembled.envelope
        );
        let chunks = events.iter().filter(|event| event.kind == EventKind::Chunk);
        let told = chunks
            .into_iter()
            .any(|event| event.body.contains(r#""type":"snapshot""#));
        assert!(told, "the second answer is announced by a snapshot");
    }
}

const GOOD: &str =
    r#"{"ok":true,"meta":{"confidence":0.9,"risk":"low","explain":"e"},"data":{"rationale":"fixed"}}"#;

fn twice(first: &str, second: &str) -> String {
    format!("- times: 1\n  reply: '{first}'\n- match: does not keep the contract\n  reply: '{second}'\n")
}

#[tokio::test]
async fn invalid_answer_is_reasked_once_with_its_errors() {
    for first in ["no json at all", r#"{"ok":true,"meta":{},"data":[]}"#] {
        let modules = vec![
            module("m", "", "p"),
            module("strict", "failure: {reask: false}\n", "p"),
        ];
        let engine = engine(
            modules,
            vec![named("s", &twice(first, GOOD))],
            Settings::default(),
        );
        let envelope = answer(&engine, "m", json!({})).await;
        assert_eq!(envelope["data"]["rationale"], "fixed", "{envelope}");
    }
    for manifest in [
        "failure: {reask: false}\n",
        "failure: {contract: throw}\n",
        "policies: {side_effects: allow}\n",
    ] {
        let engine = engine(
            vec![module("m", manifest, "p")],
            vec![named("s", &twice("no json", GOOD))],
            Settings::default(),
        );
        let envelope = answer(&engine, "m", json!({})).await;
        assert_eq!(envelope["error"]["code"], "E1000", "{manifest}");
    }
}

#[tokio::test]
async fn second_invalid_answer_ends_the_run() {
    let yaml = "- reply: no json at all\n";
    let engine = engine(
        vec![module("m", "", "p")],
        vec![named("s", yaml)],
        Settings::default(),
    );
    let envelope = answer(&engine, "m", json!({})).await;
    assert_eq!(envelope["error"]["code"], "E1000");
    assert_ne!(envelope["ok"], Value::Bool(true));
}

#[tokio::test]
async fn denied_tool_ends_the_run() {
    let yaml = "- events:
    - {type: started}
    - {type: block_start, index: 0, block: {kind: tool_call, id: c1, name: delete_all}}
    - {type: block_end, index: 0}
    - {type: finish, reason: tool_calls}
";
    let denied = answer(
        &engine(
            vec![module("m", "", "p")],
            vec![named("s", yaml)],
            Settings::default(),
        ),
        "m",
        json!({}),
    )
    .await;
    assert_eq!(denied["error"]["code"], "E4007", "{denied}");
    assert_eq!(denied["error"]["details"]["tool"], "delete_all");
    // If allowed, it is no answer either, but not denied.
    let allowed = module("m", "tools: {allowed: [delete_all]}\n", "p");
    let answer = answer(
        &engine(vec![allowed], vec![named("s", yaml)], Settings::default()),
        "m",
        json!({}),
    )
    .await;
    assert_eq!(answer["error"]["code"], "E1000", "{answer}");
}
