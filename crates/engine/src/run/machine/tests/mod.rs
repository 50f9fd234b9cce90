//! Runs under simulated time.

mod attempts;
mod backend_warnings;
mod preparation;
mod reask;

use std::sync::Arc;

use ir::error::Phase;
use ir::event::FinishReason;
use ir::{ChatRequest, Error, ErrorKind, Event, Message, Request, RunId};
use module::stream::{Assembled, Assembler, Chunk};
use module::{FileMap, Module, load};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{AcceptAll, Input, MachineConfig, Output, RunMachine};
use crate::fleet::test_fleet::once_each;
use crate::fleet::{BackendSelector, Fleet};
use crate::run::command::{OnDisconnect, RunMode};
use crate::run::record::Trace;

const REPLY: &str = r#"{"ok":true,"meta":{"confidence":0.9,"risk":"low","explain":"e"},"data":{"rationale":"Wörter and \"quotes\"","n":3,"list":["a","b"],"deep":{"text":"日本"}}}"#;

fn module() -> Arc<Module> {
    let manifest = "name: m\nversion: 1.0.0\nresponsibility: r\ntier: decision\nresponse:\n  mode: both\n  buffer_size: 0\n";
    let schema = json!({"data": {"type": "object", "required": ["rationale"]}});
    let files: FileMap = [
        ("module.yaml", String::from(manifest)),
        ("prompt.md", String::from("$INPUT")),
        ("schema.json", schema.to_string()),
    ]
    .into_iter()
    .collect();
    Arc::new(load(&files).module.unwrap())
}

fn plan() -> MachineConfig {
    MachineConfig {
        prepares: false,
        run: RunId::from_parts(1, 1),
        module: module(),
        mode: RunMode::Stream,
        on_disconnect: OnDisconnect::Keep,
        progress: true,
        chunk_type: None,
        warnings: Vec::new(),
        timeout_ms: None,
        trace: None,
        settings: Arc::default(),
        reply_policy: Arc::new(AcceptAll),
        inherited: None,
        preface: crate::run::Preface::default(),
    }
}

fn request() -> Arc<Request> {
    let chat = ChatRequest {
        messages: vec![Message::text(ir::Role::User, "what is it?")],
        ..ChatRequest::default()
    };
    Arc::new(Request::chat("req", chat))
}

/// A machine, the simulated time, and everything that was emitted.
struct Sim {
    machine: RunMachine,
    now_ms: u64,
    /// Attempts under way: number and member.
    open: Vec<(u32, usize)>,
    opened: Vec<usize>,
    /// The requests of the attempts.
    requests: Vec<Arc<Request>>,
    mirrored: Vec<usize>,
    chunks: Vec<Chunk>,
    finishes: Vec<Option<String>>,
}

impl Sim {
    fn new(backends: usize, plan: MachineConfig) -> Self {
        Self::with(&once_each(backends), plan)
    }

    fn with(fleet: &Arc<Fleet>, plan: MachineConfig) -> Self {
        Self::asking(request(), fleet, plan, 0)
    }

    fn asking(request: Arc<Request>, fleet: &Arc<Fleet>, plan: MachineConfig, began_ms: u64) -> Self {
        let dispatch = BackendSelector::new(fleet.clone(), request, 7, began_ms);
        let mut sim = Self {
            machine: RunMachine::new(plan, dispatch),
            now_ms: 0,
            open: Vec::new(),
            opened: Vec::new(),
            requests: Vec::new(),
            mirrored: Vec::new(),
            chunks: Vec::new(),
            finishes: Vec::new(),
        };
        sim.step(Input::Start);
        sim.step(Input::Joined);
        sim
    }

    fn step(&mut self, input: Input) {
        let mut outputs = Vec::new();
        self.machine.step(input, self.now_ms, &mut outputs);
        for output in outputs {
            assert!(self.finishes.is_empty(), "{output:?} after the terminal chunk");
            match output {
                Output::StartAttempt {
                    attempt,
                    member,
                    request,
                } => {
                    self.requests.push(request);
                    self.open.push((attempt, member));
                    self.opened.push(member);
                }
                Output::CancelAttempt { attempt } => self.open.retain(|(number, _)| *number != attempt),
                Output::StartComposition => panic!("there are no steps"),
                Output::Mirror { guard, .. } => self.mirrored.push(guard.member()),
                Output::Emit(chunk) => {
                    assert!(!chunk.is_end());
                    self.chunks.push(chunk);
                }
                Output::Finish { last, code, .. } => {
                    assert!(last.is_end());
                    self.chunks.push(*last);
                    self.finishes.push(code);
                }
            }
        }
        if !self.finishes.is_empty() {
            assert!(self.open.is_empty(), "attempts outlive their run");
        }
    }

    /// The attempt that was started last; 0 if none is open.
    fn latest(&self) -> u32 {
        self.open.last().map_or(0, |(number, _)| *number)
    }

    fn event(&mut self, attempt: u32, event: Event) {
        self.step(Input::Event { attempt, event });
    }

    fn ended(&mut self) {
        let attempt = self.latest();
        self.step(Input::Ended { attempt });
    }

    fn trace(&self) -> Trace {
        self.machine.trace()
    }

    fn text(&mut self, text: &str) {
        self.event(self.latest(), Event::text(0, text));
    }

    fn finish(&mut self, reason: FinishReason) {
        self.event(self.latest(), Event::Finish { reason });
        self.ended();
    }

    fn fail(&mut self, kind: ErrorKind) {
        self.fail_with(Error::new(kind, Phase::MidStream, "it broke"));
    }

    fn fail_with(&mut self, error: Error) {
        self.event(self.latest(), Event::Error { error });
    }

    /// Advances the time, with a tick whenever one is due.
    fn pass(&mut self, ms: u64) {
        let end = self.now_ms + ms;
        while let Some(wake) = self.machine.next_wake_ms().filter(|wake| *wake <= end) {
            assert!(wake >= self.now_ms, "a tick was due in the past");
            self.now_ms = wake;
            self.step(Input::Tick);
        }
        self.now_ms = end;
    }

    fn assemble(&self) -> Assembled {
        let mut assembler = Assembler::new();
        for chunk in &self.chunks {
            let value = chunk.clone().into_value();
            assembler.push(Chunk::from_value(value).unwrap()).unwrap();
        }
        let assembled = assembler.finish();
        assert!(assembled.violations.is_empty(), "{:?}", assembled.violations);
        assembled
    }

    fn code(&self) -> &str {
        match self.finishes.as_slice() {
            [Some(code)] => code,
            other => panic!("not one failure: {other:?}"),
        }
    }
}

fn expected_data() -> Value {
    serde_json::from_str::<Value>(REPLY).unwrap()["data"].clone()
}

#[test]
fn chunks_of_a_reply_fold_into_its_envelope() {
    let mut sim = Sim::new(1, plan());
    sim.text(REPLY);
    sim.now_ms = 120;
    sim.finish(FinishReason::Stop);
    let assembled = sim.assemble();
    assert_eq!(assembled.envelope["data"], expected_data());
    assert_eq!(assembled.envelope["meta"]["model"], "test/m0");
    assert_eq!(assembled.envelope["meta"]["processing_time_ms"], 120);
    assert_eq!(sim.finishes, [None]);
}

#[test]
fn failover_at_any_byte_leaves_no_trace_in_the_data() {
    for cut in 0..REPLY.len() {
        let Some(part) = REPLY.get(..cut) else { continue };
        let mut sim = Sim::new(2, plan());
        sim.text(part);
        let sent = sim.chunks.iter().any(|chunk| chunk.seq().is_some());
        sim.ended();
        assert_eq!(sim.opened, [0, 1], "cut at {cut}");
        sim.text(REPLY);
        sim.finish(FinishReason::Stop);
        let assembled = sim.assemble();
        assert_eq!(assembled.envelope["data"], expected_data(), "cut at {cut}");
        assert_eq!(assembled.envelope["meta"]["model"], "test/m1");
        let taken_back = sim.chunks.iter().filter(|chunk| is_take_back(chunk)).count();
        assert_eq!(taken_back, usize::from(sent), "cut at {cut}");
    }
}

fn is_take_back(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Snapshot { field, data, .. } if field == "data" && *data == json!({}))
}

#[test]
fn failure_before_output_sends_no_reset() {
    let mut sim = Sim::new(2, plan());
    sim.fail(ErrorKind::Upstream);
    sim.text(REPLY);
    sim.finish(FinishReason::Stop);
    assert_eq!(sim.opened, [0, 1]);
    assert!(!sim.chunks.iter().any(is_take_back));
    assert_eq!(sim.assemble().envelope["data"], expected_data());
}

#[test]
fn invalid_request_is_not_tried_elsewhere() {
    let mut sim = Sim::new(2, plan());
    sim.fail(ErrorKind::InvalidRequest);
    assert_eq!(sim.opened, [0]);
    assert_eq!(sim.finishes.len(), 1);
}

#[test]
fn final_error_depends_on_the_last_failure_and_the_output() {
    let mut early = Sim::new(2, plan());
    early.fail(ErrorKind::Network);
    early.fail(ErrorKind::Network);
    assert_eq!(early.code(), "E4001");

    let mut limited = Sim::new(1, plan());
    limited.fail(ErrorKind::RateLimited);
    assert_eq!(limited.code(), "E4002");
    let details = &limited.assemble().envelope["error"]["details"];
    assert_eq!(details["retry_after_ms"], 1_000);

    let mut late = Sim::new(1, plan());
    late.text(REPLY.get(..100).unwrap());
    late.ended();
    assert_eq!(late.code(), "E2010");
    let envelope = late.assemble().envelope;
    let rationale = envelope["partial_data"]["rationale"].as_str().unwrap();
    assert!(
        !rationale.is_empty()
            && expected_data()["rationale"]
                .as_str()
                .unwrap()
                .starts_with(rationale)
    );
    let last = late.chunks.iter().rev().find_map(Chunk::seq).unwrap();
    assert_eq!(envelope["error"]["recovery"]["last_seq"], last);
}

#[test]
fn unresponsive_back_end_times_out() {
    let mut sim = Sim::new(2, plan());
    sim.pass(59_999);
    assert_eq!(sim.opened, [0]);
    sim.pass(1);
    assert_eq!(sim.opened, [0, 1]);
    sim.text(REPLY);
    let reason = FinishReason::Stop;
    sim.event(sim.latest(), Event::Finish { reason });
    // The answer is complete, but the connection is never closed.
    sim.pass(60_000);
    assert_eq!(sim.finishes, [None]);
    assert_eq!(sim.open, []);
}

#[test]
fn endless_output_ends_at_the_deadline() {
    for (mode, code) in [(RunMode::Stream, "E2011"), (RunMode::Sync, "E2002")] {
        let mut sim = Sim::new(1, MachineConfig { mode, ..plan() });
        sim.text(REPLY.get(..100).unwrap());
        while sim.finishes.is_empty() {
            assert!(sim.now_ms <= 300_000);
            sim.text(" ");
            sim.pass(1_000);
        }
        assert_eq!((sim.now_ms, sim.code()), (300_000, code));
        assert_eq!(sim.open, []);
        assert!(sim.assemble().envelope["partial_data"]["rationale"].is_string());
    }
}

#[test]
fn stream_without_readers_continues_for_the_grace_period() {
    let send_text = |sim: &mut Sim, seconds: u64| {
        for _ in 0..seconds {
            sim.pass(1_000);
            sim.text(" ");
        }
    };
    let mut sim = Sim::new(1, plan());
    send_text(&mut sim, 10);
    sim.step(Input::Left);
    send_text(&mut sim, 59);
    sim.step(Input::Joined);
    send_text(&mut sim, 100);
    assert!(sim.finishes.is_empty());
    sim.step(Input::Left);
    sim.pass(59_999);
    assert!(sim.finishes.is_empty());
    sim.pass(1);
    assert_eq!(sim.code(), "E2010");
    assert_eq!(sim.open, [], "the upstream is dropped");
}

#[test]
fn last_reader_cancels_a_run_that_is_not_kept() {
    let sync = MachineConfig {
        mode: RunMode::Sync,
        ..plan()
    };
    let cancelling = MachineConfig {
        on_disconnect: OnDisconnect::Cancel,
        ..plan()
    };
    for plan in [sync, cancelling] {
        let mut sim = Sim::new(1, plan);
        sim.pass(5);
        sim.step(Input::Left);
        assert_eq!(sim.code(), "E2010");
        assert_eq!(sim.open, []);
    }
}

#[test]
fn buffered_text_is_flushed_after_the_flush_interval() {
    let mut slow = plan();
    let manifest = "name: m\nversion: 1.0.0\nresponsibility: r\ntier: decision\n";
    let files: FileMap = [
        ("module.yaml", manifest),
        ("prompt.md", "p"),
        ("schema.json", "{}"),
    ]
    .into_iter()
    .collect();
    slow.module = Arc::new(load(&files).module.unwrap());
    let mut sim = Sim::new(1, slow);
    let last_delta = |sim: &Sim| match sim.chunks.last() {
        Some(Chunk::Delta { delta, .. }) => delta.clone(),
        other => panic!("{other:?}"),
    };
    sim.text(r#"{"ok":true,"data":{"rationale":"half "#);
    assert_eq!(last_delta(&sim), "half ", "the first text is not buffered");
    sim.text("a sen");
    sim.pass(49);
    assert_eq!(last_delta(&sim), "half ");
    sim.pass(1);
    assert_eq!(last_delta(&sim), "a sen");
}

#[test]
fn invalid_answer_ends_in_an_error() {
    let mut sim = Sim::new(2, plan());
    sim.text("I would rather not.");
    sim.finish(FinishReason::Stop);
    assert_eq!(sim.code(), "E1000");
    assert_eq!(sim.opened, [0], "an invalid answer is not a failed back-end");

    let mut short = Sim::new(1, plan());
    short.text(REPLY.get(..60).unwrap());
    short.finish(FinishReason::Length);
    assert_eq!(short.code(), "E2003");
}

#[test]
fn synchronous_run_emits_only_the_terminal_chunk() {
    let mut sim = Sim::new(
        1,
        MachineConfig {
            mode: RunMode::Sync,
            ..plan()
        },
    );
    sim.text(REPLY);
    sim.pass(1_000);
    assert!(sim.chunks.is_empty());
    sim.finish(FinishReason::Stop);
    assert_eq!(sim.chunks.len(), 1);
    let mut assembler = Assembler::new();
    drop(assembler.push(sim.chunks[0].clone()));
    assert_eq!(assembler.finish().envelope["data"], expected_data());
}

#[test]
fn run_without_back_ends_fails() {
    assert_eq!(Sim::new(0, plan()).code(), "E4001");
}

#[derive(Clone, Debug)]
enum Happening {
    Text(usize),
    Finish,
    Ended,
    Error,
    Pass(u64),
    Left,
    Joined,
    Cancel,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        8 => (1usize..40).prop_map(Happening::Text),
        1 => Just(Happening::Finish),
        1 => Just(Happening::Ended),
        1 => Just(Happening::Error),
        2 => (0u64..70_000).prop_map(Happening::Pass),
        1 => Just(Happening::Left),
        1 => Just(Happening::Joined),
        1 => prop_oneof![9 => Just(Happening::Joined), 1 => Just(Happening::Cancel)],
    ]
}

proptest! {
    /// Any order of inputs: one attempt at a time, numbers without gaps, one terminal chunk, and the chunks
    /// fold without violations.
    #[test]
    fn any_order_of_inputs_gives_a_valid_stream(happenings in prop::collection::vec(happening(), 0..60)) {
        let mut sim = Sim::new(3, plan());
        let mut at = 0;
        for happening in happenings {
            let before = sim.opened.len();
            match happening {
                Happening::Text(bytes) => {
                    let end = REPLY.floor_char_boundary((at + bytes).min(REPLY.len()));
                    sim.text(REPLY.get(at..end).unwrap_or_default());
                    at = end;
                }
                Happening::Finish => sim.event(sim.latest(), Event::Finish { reason: FinishReason::Stop }),
                Happening::Ended => sim.ended(),
                Happening::Error => sim.fail(ErrorKind::Network),
                Happening::Pass(ms) => sim.pass(ms),
                Happening::Left => sim.step(Input::Left),
                Happening::Joined => sim.step(Input::Joined),
                Happening::Cancel => sim.step(Input::Cancel),
            }
            if sim.opened.len() > before {
                at = 0;
            }
        }
        sim.pass(400_000);
        prop_assert_eq!(sim.finishes.len(), 1);
        prop_assert_eq!(sim.trace().attempts.len(), sim.opened.len());
        prop_assert!(sim.open.is_empty());
        let assembled = sim.assemble();
        prop_assert!(assembled.ended);
        let seqs: Vec<u64> = sim.chunks.iter().filter_map(Chunk::seq).collect();
        prop_assert!(seqs.iter().copied().eq(1..=seqs.len() as u64));
    }
}
