use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{CompositionMachine, Outcome, StepStart, build};
use crate::file_map::FileMap;
use crate::limits;
use crate::module::Module;

fn module(name: &str, manifest: &str, prompt: &str) -> Arc<Module> {
    let manifest = format!("name: {name}\nversion: 1.0.0\nresponsibility: r\ntier: decision\n{manifest}");
    let files: FileMap = [
        ("module.yaml", manifest.as_str()),
        ("prompt.md", prompt),
        ("schema.json", "{}"),
    ]
    .into_iter()
    .collect();
    Arc::new(crate::load(&files).module.unwrap())
}

fn input() -> Map<String, Value> {
    json!({"code": "x = 1", "_context": {"a": 1}})
        .as_object()
        .unwrap()
        .clone()
}

fn flow(composition: &str, prompt: &str) -> CompositionMachine {
    let manifest = format!("composition:\n{composition}");
    CompositionMachine::new(&module("own", &manifest, prompt), &input())
        .unwrap()
        .unwrap()
}

fn good(data: &Value) -> Value {
    json!({"ok": true, "meta": {"confidence": 0.8, "risk": "low", "explain": "e"}, "data": data})
}

fn sure(confidence: f64) -> Value {
    json!({"ok": true, "meta": {"confidence": confidence, "risk": "low", "explain": "why"}, "data": {"rationale": "r"}})
}

fn bad(code: &str) -> Value {
    json!({"ok": false, "meta": {}, "error": {"code": code, "message": "m"}})
}

/// Runs to the outcome with one answer per step; returns the inputs in start order.
fn drive(
    flow: &mut CompositionMachine,
    answer: impl Fn(&StepStart) -> Value,
) -> (Vec<(String, Value)>, Outcome) {
    let mut started = Vec::new();
    let mut running = Vec::new();
    loop {
        running.extend(flow.start());
        if let Some(outcome) = flow.outcome() {
            return (started, outcome);
        }
        let start: StepStart = running.remove(0);
        started.push((start.step.clone(), Value::Object(start.input.clone())));
        flow.finish(start.index, answer(&start));
    }
}

fn names(started: &[(String, Value)]) -> Vec<&str> {
    started.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn sequence_passes_data_to_next_step_and_calls_own_model_last() {
    let mut flow = flow("  requires: [{name: a}, {name: b}]\n", "Sum up.");
    let (started, outcome) = drive(&mut flow, |start| good(&json!({"from": start.step})));
    assert_eq!(
        started,
        [
            (String::from("a"), json!({"code": "x = 1"})),
            (String::from("b"), json!({"from": "a"}))
        ]
    );
    let Outcome::Ask { results, .. } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(results.get("b").unwrap()["data"]["from"], "b");
}

#[test]
fn data_flows_through_mappings_conditions_and_aggregates() {
    let mut flow = flow(
        "  requires: [{name: a}, {name: b}, {name: c}]
  dataflow:
    - {from: input, to: a, mapping: {text: $.code, tone: dry}}
    - {from: a.output, to: b, mapping: {words: '$.data.words[*].w', risk: $.meta.risk, absent: $.data.no}, condition: $.meta.confidence > 0.5}
    - {from: a, to: c, condition: $.meta.risk == 'high'}
    - {from: [a, b, c], to: output, aggregate: merge}
",
        "Unused.",
    );
    let (started, outcome) = drive(&mut flow, |start| match start.step.as_str() {
        "a" => good(&json!({"words": [{"w": 1}, {}, {"w": 2}], "deep": {"x": 1}, "rationale": "of a"})),
        _ => good(&json!({"deep": {"y": 2}, "rationale": "of b"})),
    });
    assert_eq!(
        started,
        [
            (String::from("a"), json!({"text": "x = 1", "tone": "dry"})),
            (String::from("b"), json!({"words": [1, 2], "risk": "low"})),
        ]
    );
    let Outcome::Answer(envelope) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(envelope["data"]["deep"], json!({"x": 1, "y": 2}));
    assert_eq!(envelope["data"]["rationale"], "of b");
    assert_eq!(envelope["meta"]["explain"], "Composed of a, b");
}

#[test]
fn parallel_steps_start_together_and_minimum_confidence_wins() {
    let mut flow = flow(
        "  pattern: parallel
  requires: [{name: a}, {name: b}]
  dataflow:
    - {from: input, to: [a, b]}
    - {from: [a.output, b.output], to: output, aggregate: array}
",
        "Unused.",
    );
    let starts = flow.start();
    assert_eq!(starts.len(), 2);
    assert!(flow.outcome().is_none());
    flow.finish(1, sure(0.6));
    assert!(flow.start().is_empty() && flow.outcome().is_none());
    flow.finish(0, sure(0.9));
    assert!(flow.start().is_empty());
    let Some(Outcome::Answer(envelope)) = flow.outcome() else {
        panic!()
    };
    assert_eq!(envelope["meta"]["confidence"], 0.6);
    assert_eq!(
        envelope["data"]["results"],
        json!([{"rationale": "r"}, {"rationale": "r"}])
    );
    assert_eq!(envelope["data"]["rationale"], "a: r\n\nb: r");
}

const ROUTED: &str = "  pattern: conditional
  requires: [{name: quick}, {name: deep}, {name: wild}]
  routing:
    - {condition: $.quick.meta.confidence > 0.9, next: null}
    - {condition: $.quick.meta.confidence > 0.5, next: deep}
    - {condition: $.quick.meta.confidence <= 0.5, next: wild}
";

#[test]
fn routes_select_next_step_and_result() {
    for (confidence, expected) in [
        (0.95, vec!["quick"]),
        (0.7, vec!["quick", "deep"]),
        (0.2, vec!["quick", "wild"]),
    ] {
        let mut flow = flow(ROUTED, "Unused.");
        let (started, outcome) = drive(&mut flow, |start| match start.step.as_str() {
            "quick" => sure(confidence),
            _ => sure(0.99),
        });
        assert_eq!(names(&started), expected);
        let Outcome::Answer(envelope) = outcome else {
            panic!("{outcome:?}")
        };
        let last = if expected.len() == 1 { confidence } else { 0.99 };
        assert_eq!(envelope["meta"]["confidence"], last);
        assert_eq!(envelope["meta"]["explain"], "why");
    }
}

#[test]
fn calls_run_in_prompt_order_and_see_earlier_results() {
    let prompt = "@call:a @call:b($.a.data.found) @call:b(see ${code})[optional, timeout=2s] \
                  @call:c({\"x\": \"$.a.data\", \"y\": \"<$ARGUMENTS>\", \"z\": [1]})";
    let manifest = "requires: [{name: unused}]\n";
    let mut flow = flow(&format!("  {manifest}"), prompt);
    let (started, outcome) = drive(&mut flow, |start| match start.step.as_str() {
        "b#2" => bad("E2004"),
        _ => good(&json!({"found": "it"})),
    });
    let text = |text: &str| json!({"$ARGUMENTS": text});
    assert_eq!(
        started,
        [
            (String::from("a"), json!({"code": "x = 1"})),
            (String::from("b"), text("it")),
            (String::from("b#2"), text("see x = 1")),
            (
                String::from("c"),
                json!({"x": {"found": "it"}, "y": "<x = 1>", "z": [1]})
            ),
        ]
    );
    assert!(matches!(outcome, Outcome::Ask { .. }));
    assert_eq!(flow.warnings()[0]["code"], "W3002");
    assert_eq!(flow.results().get("b#2"), Some(&Value::Null));
}

#[test]
fn failed_required_step_ends_composition() {
    let composition = "  requires: [{name: a}, {name: b}]\n";
    let mut first = flow(composition, "p");
    let (started, outcome) = drive(&mut first, |_| bad("E2004"));
    assert_eq!(names(&started), ["a"]);
    let Outcome::Fail { error, partial_data } = outcome else {
        panic!()
    };
    assert_eq!((error.code.as_str(), partial_data), ("E2004", None));
    let mut second = flow(composition, "p");
    let (_, outcome) = drive(&mut second, |start| match start.step.as_str() {
        "a" => good(&json!({"x": 1})),
        _ => bad("E4001"),
    });
    let Outcome::Fail { error, partial_data } = outcome else {
        panic!()
    };
    assert_eq!(error.code, "E3002");
    assert!(error.recoverable, "a retry may reach a back-end");
    assert_eq!(error.details.unwrap()["failed"][0]["code"], "E4001");
    assert_eq!(
        Value::Object(partial_data.unwrap()),
        json!({"a": {"x": 1}, "b": null})
    );
}

#[test]
fn dataflow_cycle_is_refused() {
    let manifest = "composition:
  requires: [{name: a}, {name: b}]
  dataflow: [{from: a, to: b}, {from: b, to: a}]
";
    let error = CompositionMachine::new(&module("own", manifest, "p"), &input()).unwrap_err();
    assert_eq!(error.code, "E4004");
}

#[test]
fn results_are_inserted_once_and_not_parsed_as_template() {
    let own = module(
        "own",
        "composition:\n  requires: [{name: a}, {name: b}]\n",
        "Risk {{a.meta.risk}}: {{a.data}} {{unknown.meta.risk}} {{ not one }} $INPUT",
    );
    let mut flow = CompositionMachine::new(&own, &input()).unwrap().unwrap();
    let (_, outcome) = drive(&mut flow, |start| {
        good(&json!({"say": format!("{} $INPUT {{{{b.data}}}}", start.step)}))
    });
    let Outcome::Ask { input, results } = outcome else {
        panic!()
    };
    let prompt = crate::prompt::render_with(&own, &input, &results);
    let crate::prompt::PromptPiece::Text(text) = &prompt.pieces[0] else {
        panic!()
    };
    assert!(text.starts_with("Risk low: {\n"), "{text}");
    assert!(text.contains("a $INPUT {{b.data}}"), "{text}");
    assert!(
        text.contains("{{unknown.meta.risk}} {{ not one }} {\n  \"code\""),
        "{text}"
    );
    assert!(text.contains("[Result from b]:"), "{text}");
    assert!(!text.contains("_context"), "{text}");
}

fn library(edges: &[(&str, &str)]) -> BTreeMap<String, Arc<Module>> {
    let modules = edges
        .iter()
        .map(|(name, manifest)| (String::from(*name), module(name, manifest, "p")));
    modules.collect()
}

fn requires(list: &str) -> String {
    format!("composition:\n  requires: [{list}]\n")
}

#[test]
fn graph_check_reports_cycles_depth_missing_and_denied_modules() {
    let deep: Vec<(String, String)> = (0..7)
        .map(|n| (format!("d{n}"), requires(&format!("{{name: d{}}}", n + 1))))
        .collect();
    let mut edges: Vec<(&str, &str)> = deep
        .iter()
        .map(|(name, list)| (name.as_str(), list.as_str()))
        .collect();
    let (a, b, c) = (
        requires("{name: b}"),
        requires("{name: c}"),
        requires("{name: a}"),
    );
    let (old, lost) = (
        requires("{name: leaf, version: ^2.0.0}"),
        requires("{name: missing}"),
    );
    let saved = requires("{name: missing, fallback: leaf}, {name: gone, optional: true}");
    let strict = format!("policies: {{network: deny}}\n{}", requires("{name: middle}"));
    let middle = requires("{name: greedy}");
    let shy = requires("{name: hidden}");
    edges.extend([
        ("d7", ""),
        ("a", a.as_str()),
        ("b", b.as_str()),
        ("c", c.as_str()),
        ("leaf", ""),
        ("old", old.as_str()),
        ("lost", lost.as_str()),
        ("saved", saved.as_str()),
        ("strict", strict.as_str()),
        ("middle", middle.as_str()),
        ("greedy", "policies: {network: allow}\n"),
        ("shy", shy.as_str()),
        ("hidden", "invocation: {agent_invocable: false}\n"),
    ]);
    let library = library(&edges);
    let find = |name: &str| library.get(name).cloned();
    for (root, code, message) in [
        ("a", "E4004", "Circular dependency detected: a → b → c → a"),
        ("d0", "E4005", "Maximum composition depth (5) exceeded"),
        ("lost", "E4006", "module `missing` cannot be found"),
        (
            "old",
            "E4006",
            "module `leaf` has version 1.0.0, but ^2.0.0 is required",
        ),
        (
            "strict",
            "E4007",
            "module `greedy` requires `network`, which `strict` denies",
        ),
        (
            "shy",
            "E4007",
            "module `hidden` may not be called by other modules",
        ),
    ] {
        let error = build(&library[root], &find).check().unwrap_err();
        assert_eq!((error.code.as_str(), error.message.as_str()), (code, message));
    }
    for root in ["d2", "saved", "middle", "leaf"] {
        build(&library[root], &find).check().unwrap();
    }
    assert_eq!(build(&library["d2"], &find).depth, Some(5));
}

proptest! {
    /// Any acyclic dataflow runs every step once, after the steps it depends on, with at most the allowed
    /// number of parallel steps, for any completion order.
    #[test]
    fn start_order_respects_dataflow(
        edges in prop::collection::vec((0usize..12, 0usize..12), 0..40),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 12),
        parallel: bool,
    ) {
        let edges: Vec<(usize, usize)> = edges.into_iter().filter(|(from, to)| from < to).collect();
        let pattern = if parallel { "parallel" } else { "sequential" };
        let mut text = format!("  pattern: {pattern}\n  requires: [{}]\n  dataflow:\n",
            (0..12).rev().map(|n| format!("{{name: s{n}}}")).collect::<Vec<_>>().join(", "));
        for n in 0..12 {
            text.push_str(&format!("    - {{from: input, to: s{n}}}\n"));
        }
        for (from, to) in &edges {
            text.push_str(&format!("    - {{from: s{from}, to: s{to}}}\n"));
        }
        let mut flow = flow(&text, "p");
        let mut running: Vec<StepStart> = Vec::new();
        let mut ended: Vec<String> = Vec::new();
        let mut picks = picks.into_iter();
        loop {
            for start in flow.start() {
                let number: usize = start.step.trim_start_matches('s').parse().unwrap();
                for (from, to) in &edges {
                    let is_there = ended.contains(&format!("s{from}"));
                    prop_assert!(*to != number || is_there);
                }
                running.push(start);
            }
            let most = if parallel { limits::COMPOSITION_PARALLEL_MAX } else { 1 };
            prop_assert!(running.len() <= most);
            if flow.outcome().is_some() {
                break;
            }
            let start = running.remove(picks.next().unwrap().index(running.len()));
            flow.finish(start.index, good(&json!({})));
            ended.push(start.step);
        }
        prop_assert!(running.is_empty());
        ended.sort();
        ended.dedup();
        prop_assert_eq!(ended.len(), 12);
        prop_assert_eq!(flow.progress(), (12, 12));
    }

    #[test]
    fn any_prompt_is_segmented_and_rendered(prompt in "[@{}a-z:.$()\\[\\] ]{0,60}") {
        let own = module("own", "", &prompt);
        prop_assert_eq!(
            super::segments(&prompt).iter().map(|segment| match segment {
                super::Segment::Text(text) => text.len(),
                super::Segment::Call(call) => call.range.len(),
                super::Segment::Result { written, .. } => written.len(),
            }).sum::<usize>(),
            prompt.len()
        );
        crate::prompt::render(&own, &Map::new());
    }
}
