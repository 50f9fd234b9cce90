//! Fleets with real tasks: which attempt is cancelled when, what is recorded, and limits of mirror copies.

use std::sync::Arc;

use engine::fleet::{Fleet, Member, Settings as FleetSettings};
use engine::port::Upstream;
use engine::route::{HostPolicy, Policy};
use engine::run::{AttemptOutcome, RunOptions, envelope};
use engine::{Admission, Engine, Modules, Ports, RunMode, RunRequest, Settings, Subscription, Tenant};
use ir::RunId;
use serde_json::json;
use store::memory::MemoryJournal;
use testkit::clock::ManualClock;
use testkit::manual_upstream::ManualUpstream;
use tokio::time::timeout;

use crate::runs::{OPENING, SOON, module};

fn engine(puppets: &[Arc<ManualUpstream>], policy: Policy) -> Engine {
    let members = (0..).zip(puppets).map(|(place, puppet)| {
        let upstream: Arc<dyn Upstream> = puppet.clone();
        let mut member = Member::with_all_features(upstream);
        member.candidate.priority = -place;
        member
    });
    let host = HostPolicy {
        policy: Some(policy),
        ..HostPolicy::default()
    };
    let fleet = Fleet::new(members.collect(), host, FleetSettings::default());
    let ports = Ports {
        fleet: Arc::new(fleet),
        journal: Arc::new(MemoryJournal::default()),
        clock: Arc::new(ManualClock::default()),
    };
    Engine::new(ports, Settings::default(), Modules::default())
}

async fn start(engine: &Engine, mode: RunMode) -> (RunId, Subscription) {
    let execute = RunRequest {
        module: module(),
        input: json!({}),
        mode,
        options: RunOptions::default(),
        warnings: Vec::new(),
        admission: Admission::default(),
    };
    let tenant = Tenant::local();
    let started = engine.start(&tenant, execute).await.unwrap();
    (started.id, started.subscription)
}

#[tokio::test]
async fn slower_hedge_is_cancelled_on_first_output() {
    let (slow, quick) = (ManualUpstream::new("slow"), ManualUpstream::new("quick"));
    let policy = Policy::Hedged { k: 2, delay_ms: 1 };
    let engine = engine(&[slow.clone(), quick.clone()], policy);
    let (run, caller) = start(&engine, RunMode::Sync).await;
    let first = slow.attempt().await;
    let second = timeout(SOON, quick.attempt()).await.unwrap();
    second.text(OPENING).await;
    timeout(SOON, first.dropped()).await.unwrap();
    second.text("said once\"}}").await;
    second.finish().await;
    let last = timeout(SOON, caller.terminal_event()).await.unwrap().unwrap();
    assert_eq!(envelope(&last)["data"]["rationale"], "said once");
    let trace = engine.trace(&Tenant::local(), run).unwrap();
    let outcomes: Vec<AttemptOutcome> = trace.attempts.iter().map(|attempt| attempt.outcome).collect();
    assert_eq!(outcomes, [AttemptOutcome::HedgeLost, AttemptOutcome::Succeeded]);
    assert_eq!(
        engine.trace(&Tenant::new("other"), run),
        None,
        "traces belong to a tenant"
    );
    let idle = engine
        .fleet()
        .signals(0)
        .iter()
        .all(|signals| signals.inflight == 0);
    assert!(idle, "every in-flight slot is released");
}

#[tokio::test]
async fn disconnect_cancels_all_concurrent_attempts() {
    let (slow, quick) = (ManualUpstream::new("slow"), ManualUpstream::new("quick"));
    let policy = Policy::Hedged { k: 2, delay_ms: 1 };
    let engine = engine(&[slow.clone(), quick.clone()], policy);
    let (run, caller) = start(&engine, RunMode::Sync).await;
    let first = slow.attempt().await;
    let second = timeout(SOON, quick.attempt()).await.unwrap();
    drop(caller);
    timeout(SOON, first.dropped()).await.unwrap();
    timeout(SOON, second.dropped()).await.unwrap();
    engine.drain().await;
    let trace = engine.trace(&Tenant::local(), run).unwrap();
    let cancelled = |outcome: AttemptOutcome| outcome == AttemptOutcome::Cancelled;
    assert!(trace.attempts.iter().all(|attempt| cancelled(attempt.outcome)));
}

#[tokio::test]
async fn mirror_delays_no_run_and_is_cancelled_on_shutdown() {
    let (asked, copied) = (ManualUpstream::new("asked"), ManualUpstream::new("copied"));
    let to = String::from("copied");
    let engine = engine(&[asked.clone(), copied.clone()], Policy::Mirror { to });
    let (_, caller) = start(&engine, RunMode::Sync).await;
    let answer = asked.attempt().await;
    let copy = timeout(SOON, copied.attempt()).await.unwrap();
    copy.text("mirror output").await;
    answer.text(OPENING).await;
    answer.text("real\"}}").await;
    answer.finish().await;
    let last = timeout(SOON, caller.terminal_event()).await.unwrap().unwrap();
    assert_eq!(envelope(&last)["data"]["rationale"], "real");
    timeout(SOON, engine.drain()).await.unwrap();
    timeout(SOON, copy.dropped()).await.unwrap();
}
