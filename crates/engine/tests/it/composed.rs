//! Compositions with real tasks: steps before the answer, their attempts, timeouts and cancellation.

use std::sync::Arc;
use std::time::Duration;

use engine::port::{EncodedEvent, EventKind, Upstream};
use engine::run::{RunOptions, envelope};
use engine::{
    Admission, Engine, Error, Fleet, Modules, Ports, ReadFrom, RunMode, RunRequest, Settings, Tenant,
};
use module::stream::assemble_ndjson;
use module::{FileMap, Module, load};
use providers::ScriptedUpstream;
use providers::scripted::Script;
use serde_json::{Value, json};
use store::memory::MemoryJournal;
use testkit::clock::ManualClock;
use testkit::manual_upstream::ManualUpstream;
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(10);

pub(crate) fn module(name: &str, manifest: &str, prompt: &str) -> (String, Arc<Module>) {
    let manifest = format!("name: {name}\nversion: 1.0.0\nresponsibility: r\ntier: decision\n{manifest}");
    let files: FileMap = [
        ("module.yaml", manifest.as_str()),
        ("prompt.md", prompt),
        (
            "schema.json",
            r#"{"data":{"type":"object","required":["rationale"]}}"#,
        ),
    ]
    .into_iter()
    .collect();
    (String::from(name), Arc::new(load(&files).module.unwrap()))
}

pub(crate) fn engine(
    modules: Vec<(String, Arc<Module>)>,
    upstreams: Vec<Arc<dyn Upstream>>,
    settings: Settings,
) -> Engine {
    let ports = Ports {
        fleet: Arc::new(Fleet::in_order(upstreams)),
        journal: Arc::new(MemoryJournal::default()),
        clock: Arc::new(ManualClock::default()),
    };
    Engine::new(ports, settings, modules.into_iter().collect::<Modules>())
}

pub(crate) fn script(yaml: &str) -> Arc<dyn Upstream> {
    Arc::new(ScriptedUpstream::new("scripted", Script::parse(yaml).unwrap()))
}

/// An answer for every prompt that contains `pattern`.
pub(crate) fn says(pattern: &str, confidence: f64, data: &str) -> String {
    format!(
        "- match: '{pattern}'\n  reply: '{{\"ok\":true,\"meta\":{{\"confidence\":{confidence},\"risk\":\"low\",\
         \"explain\":\"e\"}},\"data\":{{{data}}}}}'\n"
    )
}

pub(crate) async fn events(
    engine: &Engine,
    name: &str,
    input: Value,
    mode: RunMode,
) -> Result<Vec<EncodedEvent>, Error> {
    let tenant = Tenant::local();
    let execute = RunRequest {
        module: engine.modules().get(name).unwrap().clone(),
        input,
        mode,
        options: RunOptions::default(),
        warnings: Vec::new(),
        admission: Admission::default(),
    };
    let mut subscription = engine.start(&tenant, execute).await?.subscription;
    let mut events = Vec::new();
    while let Some(batch) = timeout(SOON, subscription.next()).await.unwrap()? {
        events.extend(batch);
    }
    Ok(events)
}

pub(crate) async fn answer(engine: &Engine, name: &str, input: Value) -> Value {
    match events(engine, name, input, RunMode::Sync).await {
        Ok(events) => envelope(events.last().unwrap()),
        Err(error) => json!({"ok": false, "error": {"code": error.into_body().code}}),
    }
}

fn replies() -> Arc<dyn Upstream> {
    let yaml = [
        says("I am A", 0.9, r#""found":["x"],"rationale":"by a""#),
        says("I am B and heard x", 0.8, r#""more":1,"rationale":"by b""#),
        says("Sum up", 0.7, r#""sum":2,"rationale":"by own""#),
        String::from("- match: I am broken\n  status: 500\n"),
    ];
    script(&yaml.concat())
}

fn library() -> Vec<(String, Arc<Module>)> {
    let flow = "composition:
  requires: [{name: a}, {name: b}]
  dataflow:
    - {from: input, to: a}
    - {from: a, to: b, mapping: {heard: '$.data.found[0]'}}
";
    vec![
        module("a", "", "I am A. $INPUT"),
        module("b", "", "I am B and heard ${heard}"),
        module("broken", "", "I am broken"),
        module(
            "own",
            &format!("response: {{mode: both, buffer_size: 0}}\n{flow}"),
            "Sum up {{a.data}} {{b.data.rationale}}",
        ),
        module(
            "pipe",
            &format!("{flow}    - {{from: [a, b], to: output}}\n"),
            "Unused.",
        ),
        module("caller", "", "Sum up: @call:a @call:broken[optional]"),
        module(
            "saved",
            "composition: {requires: [{name: broken, fallback: a}]}\n",
            "Sum up {{broken.data}}",
        ),
        module(
            "stuck",
            "composition: {requires: [{name: a}, {name: broken}]}\n",
            "Sum up",
        ),
        module("lost", "", "@call:missing"),
        module("round", "", "@call:round"),
        module("hidden", "invocation: {user_invocable: false}\n", "I am A"),
        module(
            "deep",
            "composition: {requires: [{name: own}]}\n",
            "Sum up: {{own.data.sum}}",
        ),
    ]
}

#[tokio::test]
async fn final_prompt_contains_step_results() {
    let engine = engine(library(), vec![replies()], Settings::default());
    let envelope = answer(&engine, "own", json!({"code": "1"})).await;
    assert_eq!(
        envelope["data"],
        json!({"sum": 2, "rationale": "by own"}),
        "{envelope}"
    );
    let envelope = answer(&engine, "pipe", json!({})).await;
    assert_eq!(
        envelope["data"],
        json!({"found": ["x"], "more": 1, "rationale": "by b"}),
        "{envelope}"
    );
    assert_eq!(envelope["meta"]["confidence"], 0.8);
    let envelope = answer(&engine, "deep", json!({})).await;
    assert_eq!(envelope["ok"], true, "{envelope}");
}

/// Longer than the events of an ended run that stay in memory, and than those of any run.
#[tokio::test]
async fn step_answers_of_any_length_are_accepted() {
    for bytes in [70_000, 300_000, 3_000_000] {
        let flow = "composition:
  requires: [{name: a}]
  dataflow:
    - {from: input, to: a}
    - {from: a, to: output}
";
        let modules = vec![module("a", "", "I am A"), module("pipe", flow, "Unused.")];
        let words = (0..).map(|number: usize| format!("word {number} "));
        let long: String = words
            .flat_map(String::into_bytes)
            .take(bytes)
            .map(char::from)
            .collect();
        let data = format!(r#""long":"{long}","rationale":"by a""#);
        let engine = engine(
            modules,
            vec![script(&says("I am A", 0.9, &data))],
            Settings::default(),
        );
        let envelope = answer(&engine, "pipe", json!({})).await;
        assert_eq!(envelope["ok"], true, "{bytes}: {}", envelope["error"]);
        assert_eq!(envelope["data"]["long"], long, "{bytes}");
    }
}

#[tokio::test]
async fn stream_reports_every_step_and_folds_to_the_final_event() {
    let engine = engine(library(), vec![replies()], Settings::default());
    let events = events(&engine, "own", json!({}), RunMode::Stream).await.unwrap();
    let lines: Vec<&str> = events.iter().map(|event| &*event.body).collect();
    let assembled = assemble_ndjson(lines.join("\n").as_bytes());
    assert!(assembled.violations.is_empty(), "{:?}", assembled.violations);
    assert_eq!(assembled.envelope["data"]["sum"], 2);
    let progress = progress_of(&events);
    let percents = percents_of(&events);
    assert!(percents.is_sorted(), "{percents:?}");
    for step in ["step a started", "step a ended", "step b started", "step b ended"] {
        let told = progress.iter().any(|event| event["progress"]["message"] == step);
        assert!(told, "{step}: {progress:?}");
    }
}

fn progress_of(events: &[EncodedEvent]) -> Vec<Value> {
    let progress = events.iter().filter(|event| event.kind == EventKind::Progress);
    progress
        .map(|event| serde_json::from_str(&event.body).unwrap())
        .collect()
}

fn percents_of(events: &[EncodedEvent]) -> Vec<u64> {
    let progress = progress_of(events);
    let percents = progress
        .iter()
        .map(|event| event["progress"]["percent"].as_u64().unwrap());
    percents.collect()
}

#[tokio::test]
async fn progress_is_monotonic_across_a_takeover() {
    let (journal, puppet) = (Arc::new(MemoryJournal::default()), ManualUpstream::new("p"));
    let server = |upstream: Arc<dyn Upstream>| {
        let ports = Ports {
            fleet: Arc::new(Fleet::in_order([upstream])),
            journal: journal.clone(),
            clock: Arc::new(ManualClock::default()),
        };
        let modules = library().into_iter().collect::<Modules>();
        Engine::new(ports, Settings::default(), modules)
    };
    let first = server(puppet.clone());
    let tenant = Tenant::local();
    let execute = RunRequest {
        module: first.modules().get("own").unwrap().clone(),
        input: json!({}),
        mode: RunMode::Stream,
        options: RunOptions::default(),
        warnings: Vec::new(),
        admission: Admission::default(),
    };
    let started = first.start(&tenant, execute).await.unwrap();
    let (run, mut reader) = (started.id, started.subscription);
    let strings = puppet.attempt().await;
    strings
        .text(r#"{"ok":true,"meta":{"confidence":1,"risk":"low","explain":"e"},"data":{"found":["x"],"rationale":"r"}}"#)
        .await;
    strings.finish().await;
    // The second step is called, and the server stops.
    let _second = puppet.attempt().await;
    let mut before = Vec::new();
    while percents_of(&before).last().is_none_or(|percent| *percent == 0) {
        before.extend(timeout(SOON, reader.next()).await.unwrap().unwrap().unwrap());
    }
    timeout(SOON, first.stop()).await.unwrap();
    let second = server(replies());
    second.recover().await.unwrap();
    let mut reader = second.subscribe(&tenant, run, ReadFrom::Start).await.unwrap();
    let mut events = Vec::new();
    while let Some(batch) = timeout(SOON, reader.next()).await.unwrap().unwrap() {
        events.extend(batch);
    }
    let percents = percents_of(&events);
    assert!(percents.len() > percents_of(&before).len(), "{percents:?}");
    assert!(percents.is_sorted(), "{percents:?}");
    assert_eq!(envelope(events.last().unwrap())["data"]["sum"], 2);
}

#[tokio::test]
async fn failed_step_is_skipped_replaced_or_ends_the_run() {
    let engine = engine(library(), vec![replies()], Settings::default());
    let envelope = answer(&engine, "caller", json!({})).await;
    assert_eq!(envelope["ok"], true, "{envelope}");
    assert_eq!(envelope["_warnings"][0]["code"], "W3002", "{envelope}");
    let envelope = answer(&engine, "saved", json!({})).await;
    assert_eq!(envelope["ok"], true, "{envelope}");
    assert_eq!(envelope["_warnings"][0]["code"], "W4006", "{envelope}");
    let envelope = answer(&engine, "stuck", json!({})).await;
    assert_eq!(envelope["error"]["code"], "E3002", "{envelope}");
    assert_eq!(envelope["partial_data"]["broken"], Value::Null);
    assert_eq!(envelope["partial_data"]["a"]["rationale"], "by a");
}

#[tokio::test]
async fn unrunnable_composition_sends_no_request() {
    let puppet = ManualUpstream::new("never asked");
    let engine = engine(library(), vec![puppet], Settings::default());
    for (name, code) in [("lost", "E4006"), ("round", "E4004"), ("hidden", "E4007")] {
        let envelope = answer(&engine, name, json!({})).await;
        assert_eq!(envelope["error"]["code"], code, "{name}");
    }
}

#[tokio::test]
async fn attempts_of_all_steps_are_recorded() {
    let engine = engine(library(), vec![replies()], Settings::default());
    let tenant = Tenant::local();
    let execute = RunRequest {
        module: engine.modules().get("deep").unwrap().clone(),
        input: json!({}),
        mode: RunMode::Sync,
        options: RunOptions::default(),
        warnings: Vec::new(),
        admission: Admission::default(),
    };
    let started = engine.start(&tenant, execute).await.unwrap();
    let run = started.id;
    started.subscription.terminal_event().await.unwrap();
    let trace = engine.trace(&tenant, run).unwrap();
    let mut steps: Vec<Option<&str>> = trace
        .attempts
        .iter()
        .map(|attempt| attempt.step.as_deref())
        .collect();
    steps.sort_unstable();
    assert_eq!(steps, [None, Some("own"), Some("own/a"), Some("own/b")]);
}

#[tokio::test]
async fn cancel_ends_all_steps() {
    let puppet = ManualUpstream::new("p");
    let both = "composition: {pattern: parallel, requires: [{name: a}, {name: b}]}\n";
    let modules = vec![
        module("a", "", "I am A"),
        module("b", "", "I am B"),
        module("own", both, "Sum up"),
    ];
    let engine = engine(modules, vec![puppet.clone()], Settings::default());
    let tenant = Tenant::local();
    let execute = RunRequest {
        module: engine.modules().get("own").unwrap().clone(),
        input: json!({}),
        mode: RunMode::Stream,
        options: RunOptions::default(),
        warnings: Vec::new(),
        admission: Admission::default(),
    };
    let started = engine.start(&tenant, execute).await.unwrap();
    let (run, subscription) = (started.id, started.subscription);
    let (first, second) = (puppet.attempt().await, puppet.attempt().await);
    engine.cancel(&tenant, run).await.unwrap();
    timeout(SOON, async { tokio::join!(first.dropped(), second.dropped()) })
        .await
        .unwrap();
    let last = timeout(SOON, subscription.terminal_event())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(envelope(&last)["error"]["code"], "E2010");
    timeout(SOON, engine.drain()).await.unwrap();
}

#[tokio::test]
async fn timeouts_apply_per_step_and_in_total() {
    let puppet = ManualUpstream::new("silent");
    let own = "composition: {requires: [{name: a, timeout_ms: 50}]}\n";
    let slow = "composition: {timeout_ms: 70, requires: [{name: a}]}\n";
    let modules = vec![
        module("a", "", "I am A"),
        module("own", own, "Sum up"),
        module("slow", slow, "Sum up"),
    ];
    let engine = engine(modules, vec![puppet.clone()], Settings::default());
    for (name, allowed_ms) in [("own", 50), ("slow", 70)] {
        let envelope = answer(&engine, name, json!({})).await;
        assert_eq!(envelope["error"]["code"], "E2002", "{envelope}");
        assert_eq!(envelope["error"]["details"]["allowed_ms"], allowed_ms);
        puppet.attempt().await.dropped().await;
    }
}

#[tokio::test]
async fn context_is_passed_to_steps_and_shared_results_return() {
    let emits = "context: {emits: [{type: session_state}]}\n";
    let accepts = "context: {accepts: [{type: session_state, required: true}]}\n";
    let calls = format!(
        "{emits}composition: {{requires: [{{name: writer}}, {{name: reader}}], dataflow: [{{from: input, to: writer}}, {{from: writer, to: reader}}]}}\n"
    );
    let forked = calls.replace("context: {", "context: {mode: fork, ");
    let modules = vec![
        module("writer", emits, "I write"),
        module("reader", accepts, "I read $INPUT"),
        module("own", &calls, "Sum up"),
        module("forked", &forked, "Sum up"),
    ];
    let yaml = [
        String::from(
            "- match: I write\n  reply: '{\"ok\":true,\"meta\":{\"confidence\":1,\"risk\":\"none\",\"explain\":\"e\"},\
             \"data\":{\"rationale\":\"r\"},\"_emitted_context\":{\"session_state\":{\"n\":7}}}'\n",
        ),
        says("I read", 0.9, r#""rationale":"saw it""#),
        says("Sum up", 0.9, r#""rationale":"own""#),
    ];
    let engine = engine(modules, vec![script(&yaml.concat())], Settings::default());
    let envelope = answer(&engine, "own", json!({"_context": {"gossip": 1}})).await;
    assert_eq!(envelope["ok"], true, "{envelope}");
    assert_eq!(envelope["_emitted_context"], json!({"session_state": {"n": 7}}));
    assert_eq!(envelope["_warnings"][0]["code"], "W1001");
    // A forked context: the reader receives nothing, but requires it.
    let envelope = answer(&engine, "forked", json!({})).await;
    assert_eq!(envelope["error"]["code"], "E3002", "{envelope}");
    assert_eq!(envelope["error"]["details"]["failed"][0]["code"], "E1002");
}

#[tokio::test]
async fn request_above_max_input_tokens_sends_no_call() {
    let puppet = ManualUpstream::new("never asked");
    let modules = vec![module(
        "m",
        "runtime_requirements: {max_input_tokens: 400}\n",
        "$INPUT",
    )];
    let engine = engine(modules, vec![puppet], Settings::default());
    let envelope = answer(&engine, "m", json!({"text": "word ".repeat(1_000)})).await;
    assert_eq!(envelope["error"]["code"], "E1005", "{envelope}");
}
