//! Ten thousand runs with injected faults. Back-ends stream bytes of every dialect, and each call may be
//! truncated, stalled or refused at any byte; the bytes arrive in pieces of any size and pass the real
//! decoders and the real state machine. Invariants: nothing is lost or duplicated, one terminal event, and
//! every call is recorded once.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::fleet::{BackendSelector, Settings};
use engine::route::Policy;
use engine::run::machine::{Input, Output, RunMachine};
use engine::run::{AttemptOutcome, RunMode};
use ir::event::{Block, FinishReason};
use ir::{Component, Dialect, Event, Ledger, Usage};
use module::stream::{Assembler, Chunk};
use serde_json::{Value, json};
use wire::{Decoder, Encoder};

use crate::simulation::{Dice, fleet, plan, request};

const SEEDS: u64 = 10_000;

/// The data of a back-end: different for each, so that a mixture is detected.
fn data(member: usize) -> Value {
    json!({
        "rationale": format!("b{member} says \"Grüße\" — 日本 {}", "word ".repeat(3 + member)),
        "n": member,
        "list": ["a", {"deep": format!("{member}\n")}],
    })
}

fn reply(member: usize) -> String {
    let meta = json!({"confidence": 0.9, "risk": "low", "explain": "e"});
    json!({"ok": true, "meta": meta, "data": data(member)}).to_string()
}

fn usage(member: usize) -> Usage {
    Usage {
        input_tokens: Some(11),
        output_tokens: Some(20 + member as u64),
        ..Usage::default()
    }
}

/// The reply in the dialect, in deltas of random size.
fn bytes(dialect: Dialect, member: usize, dice: &mut Dice) -> Vec<u8> {
    let reply = reply(member);
    let mut events = vec![
        Event::Started {
            id: Some(String::from("id")),
            model: Some(format!("m{member}")),
            created: Some(1),
        },
        Event::BlockStart {
            index: 0,
            block: Block::Text,
        },
    ];
    let mut rest = reply.as_str();
    while !rest.is_empty() {
        let most = rest.chars().next().map_or(1, char::len_utf8);
        let (piece, behind) = rest.split_at(rest.floor_char_boundary(1 + dice.below(40)).max(most));
        events.push(Event::text(0, piece));
        rest = behind;
    }
    events.push(Event::BlockEnd { index: 0 });
    events.push(Event::Usage { usage: usage(member) });
    events.push(Event::Finish {
        reason: FinishReason::Stop,
    });
    let mut encoder = Encoder::new(dialect).unwrap();
    let mut ledger = Ledger::new(Component::Adapter);
    let mut bytes = Vec::new();
    events
        .iter()
        .for_each(|event| encoder.push(event, &mut bytes, &mut ledger));
    encoder.finish(&mut bytes);
    bytes
}

/// How a call ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Whole,
    /// The connection is closed after this byte.
    Cut(usize),
    /// Nothing is sent after this byte.
    Stall(usize),
}

struct Case {
    seed: u64,
    dialect: Dialect,
    dice: Dice,
    machine: RunMachine,
    now_ms: u64,
    open: Vec<(u32, usize)>,
    opened: u32,
    /// Calls with complete output.
    whole: BTreeSet<u32>,
    chunks: Vec<Chunk>,
    last: Vec<Chunk>,
}

impl Case {
    fn new(seed: u64, mode: RunMode) -> Self {
        let mut dice = Dice(seed);
        let dialects = wire::chat::DIALECTS;
        let dialect = dialects[(seed % dialects.len() as u64) as usize];
        let members = 1 + dice.below(3);
        let fleet = fleet(members, Policy::Priority, Settings::default(), |place, member| {
            member.candidate.priority = -(place as i32);
        });
        let dispatch = BackendSelector::new(fleet, Arc::new(request("q")), seed, 0);
        Self {
            seed,
            dialect,
            dice,
            machine: RunMachine::new(plan(seed, mode), dispatch),
            now_ms: 0,
            open: Vec::new(),
            opened: 0,
            whole: BTreeSet::new(),
            chunks: Vec::new(),
            last: Vec::new(),
        }
    }

    fn step(&mut self, input: Input) {
        let mut outputs = Vec::new();
        self.machine.step(input, self.now_ms, &mut outputs);
        for output in outputs {
            assert!(
                self.last.is_empty(),
                "seed {}: {output:?} after the end",
                self.seed
            );
            match output {
                Output::StartAttempt { attempt, member, .. } => {
                    self.open.push((attempt, member));
                    self.opened += 1;
                }
                Output::CancelAttempt { attempt } => self.open.retain(|(number, _)| *number != attempt),
                Output::StartComposition => {}
                Output::Mirror { .. } => panic!("unexpected mirror"),
                Output::Emit(chunk) => self.chunks.push(chunk),
                Output::Finish { last, .. } => self.last.push(*last),
            }
        }
    }

    /// Advances the clock to the next tick.
    fn wait(&mut self) {
        let wake = self
            .machine
            .next_wake_ms()
            .expect("a waiting run has a next tick");
        self.now_ms = self.now_ms.max(wake);
        self.step(Input::Tick);
    }

    fn is_open(&self, attempt: u32) -> bool {
        self.open.iter().any(|(number, _)| *number == attempt)
    }

    /// Simulates one call with its fault.
    fn call(&mut self, attempt: u32, member: usize) {
        let bytes = bytes(self.dialect, member, &mut self.dice);
        let fate = match self.dice.below(10) {
            0..4 => Fate::Cut(self.dice.below(bytes.len())),
            4..6 => Fate::Stall(self.dice.below(bytes.len())),
            _ => Fate::Whole,
        };
        let (Fate::Cut(end) | Fate::Stall(end)) = fate else {
            self.whole.insert(attempt);
            return self.send(attempt, &bytes, true);
        };
        self.send(attempt, &bytes[..end], fate == Fate::Cut(end));
        while self.is_open(attempt) {
            self.wait();
        }
    }

    fn send(&mut self, attempt: u32, mut bytes: &[u8], ends: bool) {
        let mut decoder = Decoder::new(self.dialect).unwrap();
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at((1 + self.dice.below(200)).min(bytes.len()));
            bytes = rest;
            self.now_ms += self.dice.below(5) as u64;
            let mut events = Vec::new();
            decoder.push(piece, &mut events);
            self.hear(attempt, events);
        }
        if ends {
            let mut events = Vec::new();
            decoder.finish(&mut events);
            self.hear(attempt, events);
            self.step(Input::Ended { attempt });
        }
    }

    fn hear(&mut self, attempt: u32, events: Vec<Event>) {
        for event in events {
            self.step(Input::Event { attempt, event });
        }
    }

    fn play(mut self) -> Self {
        self.step(Input::Start);
        self.step(Input::Joined);
        while self.last.is_empty() {
            match self.open.first().copied() {
                Some((attempt, member)) => self.call(attempt, member),
                None => self.wait(),
            }
        }
        self
    }

    /// Checks all invariants. Returns whether the run was answered.
    fn check(&self) -> bool {
        let seed = self.seed;
        assert_eq!(self.last.len(), 1, "seed {seed}: one end");
        assert!(self.open.is_empty(), "seed {seed}: a call outlived its run");
        let trace = self.machine.trace();
        let numbers: BTreeSet<u32> = trace.attempts.iter().map(|attempt| attempt.number).collect();
        assert_eq!(numbers.len(), trace.attempts.len(), "seed {seed}: recorded twice");
        assert_eq!(
            numbers,
            (1..=self.opened).collect(),
            "seed {seed}: every call is recorded"
        );
        let won: Vec<_> = trace
            .attempts
            .iter()
            .filter(|attempt| attempt.outcome == AttemptOutcome::Succeeded)
            .collect();
        for attempt in &trace.attempts {
            let lost = attempt.outcome != AttemptOutcome::Succeeded;
            assert_eq!(lost, attempt.error.is_some(), "seed {seed}: {attempt:?}");
            // A call truncated after its finish event may not have sent its usage.
            let told = self.whole.contains(&attempt.number);
            // Usage sent after the last output counts, even if the call failed then.
            let failed = attempt.outcome == AttemptOutcome::Failed;
            assert!(
                !(lost && !failed && attempt.usage.is_some()),
                "seed {seed}: {attempt:?}"
            );
            assert!(!(told && attempt.usage.is_none()), "seed {seed}: {attempt:?}");
            assert!(attempt.estimate.as_ref().is_none_or(|usage| usage.estimated));
        }
        let mut assembler = Assembler::new();
        for chunk in self.chunks.iter().chain(&self.last) {
            let pushed = assembler.push(chunk.clone());
            assert!(
                pushed.is_ok() || self.chunks.is_empty(),
                "seed {seed}: {pushed:?}"
            );
        }
        let assembled = assembler.finish();
        let envelope = assembled.envelope;
        if !self.chunks.is_empty() {
            assert!(
                assembled.violations.is_empty(),
                "seed {seed}: {:?}",
                assembled.violations
            );
            let seqs: Vec<u64> = self.chunks.iter().filter_map(Chunk::seq).collect();
            assert!(
                seqs.iter().copied().eq(1..=seqs.len() as u64),
                "seed {seed}: {seqs:?}"
            );
        }
        let [winner] = won.as_slice() else {
            assert!(won.is_empty());
            assert_eq!(envelope["ok"], false, "seed {seed}");
            return false;
        };
        let member: usize = winner.backend.trim_start_matches('b').parse().unwrap();
        assert_eq!(envelope["data"], data(member), "seed {seed}: {}", self.dialect);
        let counted = winner.usage.as_ref().and_then(|counted| counted.output_tokens);
        assert!(
            counted.is_none() || counted == usage(member).output_tokens,
            "seed {seed}: {} counted {counted:?}",
            self.dialect
        );
        let mut alone = Assembler::new();
        drop(alone.push(self.last[0].clone()));
        assert_eq!(alone.finish().envelope["data"], data(member), "seed {seed}");
        true
    }
}

#[test]
fn ten_thousand_faults_lose_and_duplicate_nothing() {
    let mut answered = 0;
    let mut calls = 0;
    for seed in 0..SEEDS {
        let mode = if seed % 7 == 0 {
            RunMode::Sync
        } else {
            RunMode::Stream
        };
        let case = Case::new(seed, mode).play();
        answered += u64::from(case.check());
        calls += u64::from(case.opened);
    }
    // The seeds must produce both kinds of ending, and many second calls.
    assert!(answered > SEEDS / 2 && answered < SEEDS, "{answered} answered");
    assert!(calls > SEEDS * 3 / 2, "{calls} calls");
}
