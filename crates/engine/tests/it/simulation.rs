//! Simulation: many runs over one fleet in simulated time, with back-ends whose behaviour is a function.
//! State machines, fleet and router are the real ones; only clock and network are simulated.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::{Arc, LazyLock};

use engine::fleet::{BackendSelector, Fleet, Member, Settings as FleetSettings};
use engine::port::Upstream;
use engine::route::{HostPolicy, Policy};
use engine::run::machine::{AcceptAll, Input, MachineConfig, Output, RunMachine};
use engine::run::{OnDisconnect, RunMode, Trace};
use ir::error::Phase;
use ir::event::FinishReason;
use ir::{ChatRequest, Error, ErrorKind, Event, Message, Request, RunId};
use module::{FileMap, Module, load};
use testkit::manual_upstream::ManualUpstream;

pub(crate) const ANSWER: &str =
    r#"{"ok":true,"meta":{"confidence":1,"risk":"none","explain":"e"},"data":{"rationale":"r"}}"#;

/// Loaded once: tens of thousands of runs share it.
fn module() -> Arc<Module> {
    static MODULE: LazyLock<Arc<Module>> = LazyLock::new(load_module);
    MODULE.clone()
}

fn load_module() -> Arc<Module> {
    let files: FileMap = [
        ("module.yaml", "name: m\nversion: 1.0.0\nresponsibility: r\ntier: decision\nresponse: {mode: both, buffer_size: 0}\n"),
        ("prompt.md", "$INPUT"),
        ("schema.json", r#"{"data":{"type":"object","required":["rationale"]}}"#),
    ]
    .into_iter()
    .collect();
    Arc::new(load(&files).module.unwrap())
}

pub(crate) fn plan(number: u64, mode: RunMode) -> MachineConfig {
    MachineConfig {
        prepares: false,
        run: RunId::from_parts(1, u128::from(number)),
        module: module(),
        mode,
        on_disconnect: OnDisconnect::Keep,
        progress: true,
        chunk_type: None,
        warnings: Vec::new(),
        timeout_ms: None,
        trace: None,
        settings: Arc::default(),
        reply_policy: Arc::new(AcceptAll),
        inherited: None,
        preface: engine::run::Preface::default(),
    }
}

pub(crate) fn request(text: &str) -> Request {
    let chat = ChatRequest {
        messages: vec![Message::text(ir::Role::User, text)],
        ..ChatRequest::default()
    };
    Request::chat("req", chat)
}

/// Members `b0`, `b1` and so on, changed by `adjust`.
pub(crate) fn fleet(
    count: usize,
    policy: Policy,
    settings: FleetSettings,
    adjust: impl Fn(usize, &mut Member),
) -> Arc<Fleet> {
    let members = (0..count).map(|number| {
        let upstream: Arc<dyn Upstream> = ManualUpstream::new(&format!("b{number}"));
        let mut member = Member::with_all_features(upstream);
        adjust(number, &mut member);
        member
    });
    let host = HostPolicy {
        policy: Some(policy),
        ..HostPolicy::default()
    };
    Arc::new(Fleet::new(members.collect(), host, settings))
}

/// A deterministic random generator.
#[derive(Clone, Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// In (0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.bits() % end.max(1) as u64) as usize
    }

    /// A log-normal time: `median`, with a long tail.
    pub(crate) fn log_normal(&mut self, median: f64, sigma: f64) -> f64 {
        let angle = 2.0 * std::f64::consts::PI * self.unit();
        median * ((-2.0 * self.unit().ln()).sqrt() * angle.cos() * sigma).exp()
    }
}

/// The behaviour of a back-end in one call.
#[derive(Clone, Debug)]
pub(crate) enum Fate {
    /// The complete answer after this time.
    Answer {
        after_ms: u64,
    },
    Fail {
        after_ms: u64,
        error: Error,
    },
}

pub(crate) fn broken(kind: ErrorKind, after_ms: u64) -> Fate {
    let error = Error::new(kind, Phase::BeforeFirstByte, "connection lost");
    Fate::Fail { after_ms, error }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Begin,
    Speak { attempt: u32, member: usize },
    Wake,
}

/// Result of a run.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) took_ms: u64,
    pub(crate) code: Option<String>,
    pub(crate) trace: Trace,
}

struct Running {
    machine: RunMachine,
    began_ms: u64,
    fates: HashMap<u32, Fate>,
}

pub(crate) struct World<F> {
    fleet: Arc<Fleet>,
    behaviour: F,
    queue: BinaryHeap<Reverse<(u64, u64, usize, Happening)>>,
    posted: u64,
    runs: Vec<Option<Running>>,
    /// The member of each call.
    pub(crate) calls: Vec<usize>,
    pub(crate) mirrored: Vec<usize>,
    pub(crate) ended: Vec<Ended>,
}

impl<F: FnMut(usize, u64) -> Fate> World<F> {
    pub(crate) fn new(fleet: &Arc<Fleet>, behaviour: F) -> Self {
        Self {
            fleet: fleet.clone(),
            behaviour,
            queue: BinaryHeap::new(),
            posted: 0,
            runs: Vec::new(),
            calls: Vec::new(),
            mirrored: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// Runs these requests, one every `every_ms`, until all have ended.
    pub(crate) fn play(&mut self, requests: impl IntoIterator<Item = Request>, every_ms: u64) {
        let requests: Vec<Arc<Request>> = requests.into_iter().map(Arc::new).collect();
        for run in 0..requests.len() {
            self.runs.push(None);
            self.post(run as u64 * every_ms, run, Happening::Begin);
        }
        while let Some(Reverse((now_ms, _, run, happening))) = self.queue.pop() {
            let input = match happening {
                Happening::Begin => {
                    let seed = 1_000 + run as u64;
                    let dispatch =
                        BackendSelector::new(self.fleet.clone(), requests[run].clone(), seed, now_ms);
                    self.runs[run] = Some(Running {
                        machine: RunMachine::new(plan(seed, RunMode::Sync), dispatch),
                        began_ms: now_ms,
                        fates: HashMap::new(),
                    });
                    self.step(run, Input::Start, now_ms);
                    Input::Joined
                }
                Happening::Wake => Input::Tick,
                Happening::Speak { attempt, .. } => {
                    self.speak(run, attempt, now_ms);
                    continue;
                }
            };
            self.step(run, input, now_ms);
        }
        assert!(self.runs.iter().all(Option::is_none), "a run never ended");
    }

    fn speak(&mut self, run: usize, attempt: u32, now_ms: u64) {
        let Some(running) = &mut self.runs[run] else {
            return;
        };
        match running.fates.remove(&attempt) {
            Some(Fate::Answer { .. }) => {
                let text = Event::text(0, ANSWER);
                let reason = FinishReason::Stop;
                self.step(run, Input::Event { attempt, event: text }, now_ms);
                let finish = Event::Finish { reason };
                self.step(
                    run,
                    Input::Event {
                        attempt,
                        event: finish,
                    },
                    now_ms,
                );
                self.step(run, Input::Ended { attempt }, now_ms);
            }
            Some(Fate::Fail { error, .. }) => {
                let event = Event::Error { error };
                self.step(run, Input::Event { attempt, event }, now_ms);
            }
            // The attempt was cancelled.
            None => {}
        }
    }

    fn step(&mut self, run: usize, input: Input, now_ms: u64) {
        let Some(running) = &mut self.runs[run] else {
            return;
        };
        let mut outputs = Vec::new();
        running
            .machine
            .step(input, now_ms - running.began_ms, &mut outputs);
        let mut posts = Vec::new();
        let mut end = None;
        for output in outputs {
            match output {
                Output::StartAttempt { attempt, member, .. } => {
                    self.calls.push(member);
                    let fate = (self.behaviour)(member, now_ms);
                    let (Fate::Answer { after_ms } | Fate::Fail { after_ms, .. }) = fate;
                    running.fates.insert(attempt, fate);
                    posts.push((now_ms + after_ms, Happening::Speak { attempt, member }));
                }
                Output::CancelAttempt { attempt } => drop(running.fates.remove(&attempt)),
                Output::StartComposition => {}
                Output::Mirror { guard, .. } => self.mirrored.push(guard.member()),
                Output::Emit(_) => {}
                Output::Finish { code, .. } => end = Some(code),
            }
        }
        if let Some(wake) = running.machine.next_wake_ms() {
            posts.push((running.began_ms + wake, Happening::Wake));
        }
        if let Some(code) = end {
            self.ended.push(Ended {
                took_ms: now_ms - running.began_ms,
                code,
                trace: running.machine.trace(),
            });
            self.runs[run] = None;
            return;
        }
        for (at_ms, happening) in posts {
            self.post(at_ms, run, happening);
        }
    }

    fn post(&mut self, at_ms: u64, run: usize, happening: Happening) {
        self.posted += 1;
        self.queue.push(Reverse((at_ms, self.posted, run, happening)));
    }

    /// The time within which this share of the runs ended.
    pub(crate) fn quantile_ms(&self, share: f64) -> f64 {
        let mut took: Vec<u64> = self.ended.iter().map(|ended| ended.took_ms).collect();
        took.sort_unstable();
        took[((took.len() as f64 * share) as usize).min(took.len() - 1)] as f64
    }

    /// Share of the calls per member.
    pub(crate) fn shares(&self, members: usize) -> Vec<f64> {
        let mut counts = vec![0.0; members];
        self.calls.iter().for_each(|call| counts[*call] += 1.0);
        let total = self.calls.len() as f64;
        counts.iter().map(|count| count / total).collect()
    }
}
