//! Cost of selecting a back-end among a thousand: everything that a run does before its first call, including
//! load snapshot, filter, order and the slot on the instance. The limit is a time, so the baseline is that
//! time. Prints one JSON line per figure for `cargo x bench`; as a test it runs only a few iterations.

#[path = "../../../bench/bench_main.rs"]
mod bench_main;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::fleet::{BackendSelector, Fleet, Member, NextBackend, Settings};
use engine::port::{Backend, EventStream, EventUpstream};
use engine::route::{HashKey, HostPolicy, Policy};
use ir::operation::Feature;
use ir::{ChatRequest, Generation, Message, Price, Request, ResponseFormat, Role};
use serde_json::json;

const BACKENDS: usize = 1_000;
const LIMIT_US: f64 = 50.0;

fn main() {
    bench_main::main("ratio", measure_all);
}

fn measure_all() {
    for policy in [
        Policy::EwmaLatency,
        Policy::LeastInflight,
        Policy::RoundRobin,
        Policy::WeightedRoundRobin,
        Policy::WeightedRandom,
        Policy::ConsistentHash(HashKey::Task),
        Policy::Priority,
        Policy::Cost,
        Policy::Hedged { k: 2, delay_ms: 50 },
    ] {
        measure(&policy);
    }
}

/// Never called: planning sends no request.
#[derive(Debug)]
struct Silent(Backend);

impl EventUpstream for Silent {
    fn backend(&self) -> &Backend {
        &self.0
    }

    fn stream(&self, _: Arc<Request>) -> EventStream {
        Box::pin(futures::stream::pending())
    }
}

fn fleet(policy: &Policy) -> Arc<Fleet> {
    let members = (0..BACKENDS).map(|number| {
        let upstream = Arc::new(Silent(Backend {
            name: format!("backend-{number}"),
            kind: String::from("silent"),
            model: None,
        }));
        let mut member = Member::with_all_features(upstream);
        // Some have every feature, some the common ones, some not even those.
        match number % 4 {
            0 => {}
            1 => drop(member.candidate.features.remove(&Feature::JsonSchema)),
            2 => member.candidate.features.retain(|one| *one == Feature::Stream),
            _ => member.candidate.features.clear(),
        }
        member.candidate.weight = 1 + number as u32 % 100;
        member.candidate.price = Some(Price::per_million(Some(number as f64), None, None));
        member
    });
    let host = HostPolicy {
        policy: Some(policy.clone()),
        ..HostPolicy::default()
    };
    Arc::new(Fleet::new(members.collect(), host, Settings::default()))
}

/// A typical module request: system message, streaming, JSON schema.
fn request() -> Arc<Request> {
    let chat = ChatRequest {
        messages: vec![Message::text(Role::System, "s"), Message::text(Role::User, "u")],
        generation: Generation {
            stream: Some(true),
            ..Generation::default()
        },
        response_format: Some(ResponseFormat::JsonSchema {
            name: None,
            description: None,
            schema: json!({"type": "object"}).into(),
            strict: None,
        }),
        ..ChatRequest::default()
    };
    Arc::new(Request::chat("req", chat))
}

#[expect(clippy::print_stdout, reason = "the figures are the output of this program")]
fn measure(policy: &Policy) {
    let fleet = fleet(policy);
    let request = request();
    let measuring = std::env::args().any(|argument| argument == "--bench");
    let budget = Duration::from_millis(if measuring { 700 } else { 0 });
    let begun = Instant::now();
    let mut times = Vec::new();
    let mut seed = 0;
    while times.len() < 5 || begun.elapsed() < budget {
        seed += 1;
        let started = Instant::now();
        let mut dispatch = BackendSelector::new(fleet.clone(), request.clone(), seed, 0);
        let choice = black_box(dispatch.next(0));
        times.push(started.elapsed().as_secs_f64() * 1e6);
        assert!(matches!(choice, NextBackend::Use { .. }), "{choice:?}");
    }
    times.sort_by(f64::total_cmp);
    let line = json!({
        "name": format!("route plan, 1,000 back-ends, {}", policy.name()),
        "measured_us": times[times.len() / 2],
        "baseline_us": LIMIT_US,
        "against": "a limit of time",
        "limit": 1.0,
    });
    println!("{line}");
}
