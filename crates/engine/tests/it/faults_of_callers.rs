//! Faults that a caller can cause never change which back-ends are called for others: not by opening a
//! breaker, and not by hiding the failures that should open one.

use std::sync::Arc;

use engine::fleet::{BackendSelector, Fleet, InFlightGuard, NextBackend, Settings};
use engine::route::Policy;
use ir::error::{Fault, Phase};
use ir::{Error, ErrorKind};
use proptest::prelude::*;

use crate::simulation::{fleet, request};

fn next(fleet: &Arc<Fleet>, seed: u64, now_ms: u64) -> Option<InFlightGuard> {
    let mut selector = BackendSelector::new(fleet.clone(), Arc::new(request("q")), seed, 0);
    match selector.next(now_ms) {
        NextBackend::Use { guard, .. } => Some(guard),
        NextBackend::Wait { .. } | NextBackend::Exhausted(_) => None,
    }
}

fn callers_fault() -> impl Strategy<Value = Error> {
    // A rate limit is the vendor's statement about every request, and pauses the back-end.
    let kinds: Vec<ErrorKind> = ErrorKind::ALL
        .into_iter()
        .filter(|kind| kind.fault() != Fault::BackEnd && *kind != ErrorKind::RateLimited)
        .collect();
    let phases = [Phase::BeforeSend, Phase::BeforeFirstByte, Phase::MidStream];
    (prop::sample::select(kinds), prop::sample::select(phases.to_vec()))
        .prop_map(|(kind, phase)| Error::new(kind, phase, "the caller's"))
}

#[derive(Clone, Debug)]
enum Call {
    Bad(Error),
    Good,
    BackEndFails,
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        6 => callers_fault().prop_map(Call::Bad),
        1 => Just(Call::Good),
        2 => Just(Call::BackEndFails),
    ]
}

#[test]
fn every_kind_has_its_fault() {
    let opens: Vec<ErrorKind> = ErrorKind::ALL
        .into_iter()
        .filter(|kind| {
            let fleet = fleet(1, Policy::Priority, Settings::default(), |_, _| {});
            for seed in 0..20 {
                if let Some(guard) = next(&fleet, seed, 0) {
                    guard.fail(&Error::new(*kind, Phase::BeforeFirstByte, "m"), 0);
                }
            }
            next(&fleet, 100, 0).is_none() && *kind != ErrorKind::RateLimited
        })
        .collect();
    assert_eq!(
        opens,
        [
            ErrorKind::Timeout,
            ErrorKind::Network,
            ErrorKind::Upstream,
            ErrorKind::InvalidResponse
        ]
    );
}

proptest! {
    /// Another caller's request is never refused, whatever one caller sends.
    #[test]
    fn bad_requests_of_one_caller_refuse_no_other(
        members in 1usize..4,
        calls in prop::collection::vec((callers_fault(), 0u64..20_000), 1..60),
    ) {
        let fleet = fleet(members, Policy::RoundRobin, Settings::default(), |_, _| {});
        let mut now_ms = 0;
        for (seed, (error, pause_ms)) in (0..).zip(calls) {
            now_ms += pause_ms;
            next(&fleet, seed, now_ms).expect("the bad caller's own call").fail(&error, now_ms);
            prop_assert!(next(&fleet, seed, now_ms).is_some(), "after {error:?}");
        }
    }

    /// With and without the bad requests in between, a breaker opens at the same call.
    #[test]
    fn bad_requests_do_not_hide_failures(calls in prop::collection::vec(call(), 1..80)) {
        let with = fleet(1, Policy::Priority, Settings::default(), |_, _| {});
        let without = fleet(1, Policy::Priority, Settings::default(), |_, _| {});
        for (seed, call) in (0..).zip(&calls) {
            if let Call::Bad(error) = call {
                if let Some(guard) = next(&with, seed, 0) {
                    guard.fail(error, 0);
                }
                continue;
            }
            let both = [next(&with, seed, 0), next(&without, seed, 0)];
            prop_assert_eq!(both[0].is_some(), both[1].is_some());
            for guard in both.into_iter().flatten() {
                match call {
                    Call::Good => guard.succeed(),
                    _ => guard.fail(&Error::new(ErrorKind::Upstream, Phase::BeforeFirstByte, "500"), 0),
                }
            }
        }
    }
}
