//! Policies, retry loop, breakers and hedging under the load of many runs.

use engine::fleet::Settings;
use engine::route::{HashKey, Policy};
use engine::run::{AttemptOutcome, AttemptRole};
use ir::error::Phase;
use ir::{Error, ErrorKind, Request};

use crate::simulation::{Dice, Fate, World, broken, fleet, request};

fn requests(count: usize) -> Vec<Request> {
    (0..count).map(|_| request("q")).collect()
}

/// Realistic times to the first token, with one call in a hundred a hundred times slower.
fn first_token_ms(dice: &mut Dice, sigma: f64, disturbed: bool) -> u64 {
    let ms = dice.log_normal(300.0, sigma);
    let slow = dice.unit() < 0.01;
    if disturbed && slow {
        (ms * 100.0) as u64
    } else {
        ms as u64
    }
}

#[test]
fn hedging_hides_the_slowest_percent_for_two_percent_more_calls() {
    const RUNS: usize = 12_000;
    for sigma in [0.4, 0.5, 0.7] {
        let tail = |disturbed: bool| {
            let policy = Policy::Hedged { k: 2, delay_ms: 50 };
            let fleet = fleet(3, policy, Settings::default(), |_, _| {});
            let mut dice = Dice(17);
            let mut world = World::new(&fleet, |_, _| Fate::Answer {
                after_ms: first_token_ms(&mut dice, sigma, disturbed),
            });
            world.play(requests(RUNS), 40);
            assert!(world.ended.iter().all(|ended| ended.code.is_none()));
            let extra = (world.calls.len() - RUNS) as f64 / RUNS as f64;
            (world.quantile_ms(0.99), extra)
        };
        let (undisturbed_ms, _) = tail(false);
        let (disturbed_ms, extra) = tail(true);
        let ratio = disturbed_ms / undisturbed_ms;
        assert!(
            ratio <= 1.35 && extra <= 0.02,
            "sigma {sigma}: p99 {disturbed_ms} for {undisturbed_ms} ms, ratio {ratio:.3}, {extra:.4} more calls"
        );
    }
}

#[test]
fn slowest_percent_shows_without_hedging() {
    let fleet = fleet(3, Policy::EwmaLatency, Settings::default(), |_, _| {});
    let mut dice = Dice(17);
    let mut world = World::new(&fleet, |_, _| Fate::Answer {
        after_ms: first_token_ms(&mut dice, 0.5, true),
    });
    world.play(requests(4_000), 40);
    assert!(world.quantile_ms(0.995) > 10_000.0);
}

#[test]
fn total_failure_causes_no_retry_storm() {
    let fleet = fleet(5, Policy::EwmaLatency, Settings::default(), |_, _| {});
    let mut world = World::new(&fleet, |_, _| broken(ErrorKind::Upstream, 20));
    world.play(requests(6_000), 10);
    assert_eq!(world.ended.len(), 6_000);
    assert!(
        world
            .ended
            .iter()
            .all(|ended| ended.code.as_deref() == Some("E4001"))
    );
    // Each breaker opens after five failures and the calls in flight, then admits single probes.
    assert!(world.calls.len() <= 200, "{} calls", world.calls.len());
}

#[test]
fn recovered_fleet_is_used_again() {
    let fleet = fleet(2, Policy::EwmaLatency, Settings::default(), |_, _| {});
    let mut world = World::new(&fleet, |_, now_ms| match now_ms {
        0..20_000 => broken(ErrorKind::Network, 5),
        _ => Fate::Answer { after_ms: 100 },
    });
    world.play(requests(12_000), 10);
    let late = &world.ended[world.ended.len() - 1_000..];
    assert!(late.iter().all(|ended| ended.code.is_none()));
}

#[test]
fn retries_stay_within_the_budget() {
    let mut settings = Settings::default();
    settings.breaker.failures = u32::MAX;
    settings.breaker.failure_share = 2.0;
    let fleet = fleet(1, Policy::Priority, settings, |_, _| {});
    let mut world = World::new(&fleet, |_, _| broken(ErrorKind::Upstream, 5));
    world.play(requests(2_000), 50);
    let most = 2_000.0 * (1.0 + settings.retry.share) + settings.retry.reserve;
    assert!(world.calls.len() as f64 <= most, "{} calls", world.calls.len());
    assert!(
        world.calls.len() > 2_300,
        "{} calls: retries were made",
        world.calls.len()
    );
}

#[test]
fn retry_after_is_respected() {
    let fleet = fleet(2, Policy::RoundRobin, Settings::default(), |_, _| {});
    let mut closed = [0..0, 0..0];
    let mut early = 0;
    let mut calls = [0u32; 2];
    let mut world = World::new(&fleet, |member, now_ms| {
        // Within the same millisecond the rate limit is not known yet.
        early += u32::from(closed[member].start < now_ms && now_ms < closed[member].end);
        calls[member] += 1;
        if calls[member].is_multiple_of(20) {
            closed[member] = now_ms..now_ms + 3_000;
            let mut error = Error::new(ErrorKind::RateLimited, Phase::BeforeFirstByte, "slow down");
            error.retry_after_ms = Some(3_000);
            return Fate::Fail { after_ms: 0, error };
        }
        Fate::Answer { after_ms: 30 }
    });
    world.play(requests(2_000), 25);
    assert!(
        world.ended.iter().all(|ended| ended.code.is_none()),
        "all runs wait and are answered"
    );
    drop(world);
    assert_eq!(early, 0);
}

#[test]
fn waits_for_a_single_rate_limited_back_end_within_the_deadline() {
    let fleet = fleet(1, Policy::Priority, Settings::default(), |_, _| {});
    let mut first = true;
    let mut world = World::new(&fleet, |_, _| {
        if std::mem::take(&mut first) {
            let mut error = Error::new(ErrorKind::RateLimited, Phase::BeforeFirstByte, "slow down");
            error.retry_after_ms = Some(5_000);
            return Fate::Fail { after_ms: 0, error };
        }
        Fate::Answer { after_ms: 30 }
    });
    let mut hurried = request("q");
    hurried.timeout_ms = Some(2_000);
    world.play([request("q"), hurried], 100);
    let hurried = world.ended.iter().find(|ended| ended.code.is_some()).unwrap();
    assert_eq!((hurried.code.as_deref(), hurried.took_ms), (Some("E4002"), 0));
    let patient = world.ended.iter().find(|ended| ended.code.is_none()).unwrap();
    assert!((5_030..=5_530).contains(&patient.took_ms), "{}", patient.took_ms);
    let roles: Vec<AttemptRole> = patient
        .trace
        .attempts
        .iter()
        .map(|attempt| attempt.role)
        .collect();
    assert_eq!(roles, [AttemptRole::First, AttemptRole::Retry]);
}

#[test]
fn rejected_key_fails_over_to_the_next_key() {
    let fleet = fleet(
        3,
        Policy::WeightedRoundRobin,
        Settings::default(),
        |number, member| {
            member.candidate.name = String::from("pool");
            member.candidate.key = number as u32;
            member.candidate.keys = 3;
        },
    );
    let mut world = World::new(&fleet, |member, _| match member {
        0 => broken(ErrorKind::Auth, 5),
        _ => Fate::Answer { after_ms: 30 },
    });
    world.play(requests(300), 10);
    assert!(world.ended.iter().all(|ended| ended.code.is_none()));
    let refused = world.calls.iter().filter(|call| **call == 0).count();
    assert!(refused <= 3, "the bad key was tried {refused} times");
    let shares = world.shares(3);
    assert!((shares[1] - shares[2]).abs() < 0.05, "{shares:?}");
}

#[test]
fn key_pool_has_one_share_of_the_traffic() {
    for policy in [
        Policy::WeightedRoundRobin,
        Policy::WeightedRandom,
        Policy::RoundRobin,
    ] {
        let fleet = fleet(4, policy.clone(), Settings::default(), |number, member| {
            if number > 0 {
                member.candidate.name = String::from("pool");
                member.candidate.key = number as u32 - 1;
                member.candidate.keys = 3;
            }
        });
        let mut world = World::new(&fleet, |_, _| Fate::Answer { after_ms: 10 });
        world.play(requests(3_000), 20);
        let shares = world.shares(4);
        assert!((0.46..0.54).contains(&shares[0]), "{policy:?}: {shares:?}");
    }
}

/// The distribution of each policy over three back-ends: b0 has twice the weight and is slow, b1 cheap, b2
/// fast.
#[test]
fn policies_distribute_calls_as_defined() {
    let shares = |policy: Policy| {
        let fleet = fleet(3, policy, Settings::default(), |number, member| {
            let candidate = &mut member.candidate;
            candidate.weight = [200, 100, 100][number];
            candidate.priority = 0;
            candidate.price = Some(ir::Price::per_million(Some([3.0, 1.0, 2.0][number]), None, None));
        });
        let mut world = World::new(&fleet, |member, _| Fate::Answer {
            after_ms: [400, 200, 50][member],
        });
        let requests = (0..2_000).map(|number| {
            let mut request = request("q");
            request.task_id = Some(format!("task-{}", number % 300));
            request
        });
        world.play(requests, 20);
        assert!(world.ended.iter().all(|ended| ended.code.is_none()));
        world.shares(3)
    };
    let near = |found: &[f64], wanted: [f64; 3], by: f64| {
        let off = found
            .iter()
            .zip(wanted)
            .any(|(found, wanted)| (found - wanted).abs() > by);
        assert!(!off, "{found:?} for {wanted:?}");
    };
    near(&shares(Policy::RoundRobin), [1.0 / 3.0; 3], 0.001);
    near(&shares(Policy::WeightedRoundRobin), [0.5, 0.25, 0.25], 0.001);
    near(&shares(Policy::WeightedRandom), [0.5, 0.25, 0.25], 0.04);
    near(
        &shares(Policy::ConsistentHash(HashKey::Task)),
        [0.5, 0.25, 0.25],
        0.12,
    );
    near(&shares(Policy::Cost), [0.0, 1.0, 0.0], 0.0);
    let least = shares(Policy::LeastInflight);
    assert!(
        least[2] > least[1] && least[1] > 0.05 && least[0] > 0.05,
        "{least:?}"
    );
    let latency = shares(Policy::EwmaLatency);
    assert!(latency[2] > 0.6, "{latency:?}");
}

#[test]
fn consistent_hash_keeps_a_task_on_its_back_end() {
    let fleet = fleet(
        4,
        Policy::ConsistentHash(HashKey::Task),
        Settings::default(),
        |_, _| {},
    );
    let mut world = World::new(&fleet, |member, _| match member {
        2 => broken(ErrorKind::Network, 5),
        _ => Fate::Answer { after_ms: 10 },
    });
    let requests = (0..1_000).map(|number| {
        let mut request = request("q");
        request.task_id = Some(format!("task-{}", number % 50));
        request
    });
    world.play(requests, 20);
    let mut homes = std::collections::HashMap::<String, std::collections::BTreeSet<String>>::new();
    for ended in &world.ended {
        assert_eq!(ended.code, None);
        let won = ended
            .trace
            .attempts
            .iter()
            .find(|attempt| attempt.outcome == AttemptOutcome::Succeeded);
        // The seed of a run is its number, and the number determines the task.
        let task = format!("task-{}", (ended.trace.seed - 1_000) % 50);
        homes
            .entry(task)
            .or_default()
            .insert(won.unwrap().backend.clone());
    }
    assert!(homes.values().all(|homes| homes.len() == 1), "{homes:?}");
}

#[test]
fn mirror_receives_copies_and_answers_no_run() {
    let policy = Policy::Mirror {
        to: String::from("b1"),
    };
    let fleet = fleet(2, policy, Settings::default(), |_, _| {});
    let mut world = World::new(&fleet, |_, _| Fate::Answer { after_ms: 10 });
    world.play(requests(200), 20);
    assert_eq!(world.mirrored, vec![1; 200]);
    assert!(world.calls.iter().all(|member| *member == 0));
}

#[test]
fn lost_hedge_has_an_estimate_and_no_usage() {
    let policy = Policy::Hedged { k: 2, delay_ms: 50 };
    let fleet = fleet(2, policy, Settings::default(), |_, _| {});
    let mut calls = 0;
    let mut world = World::new(&fleet, |_, _| {
        calls += 1;
        Fate::Answer {
            after_ms: if calls == 1 { 10_000 } else { 100 },
        }
    });
    world.play(requests(1), 1);
    let ended = &world.ended[0];
    assert_eq!(ended.took_ms, 150);
    let outcomes: Vec<_> = ended
        .trace
        .attempts
        .iter()
        .map(|attempt| {
            (
                attempt.role,
                attempt.outcome,
                attempt.latency_ms,
                attempt.estimate.is_some(),
            )
        })
        .collect();
    assert_eq!(
        outcomes,
        [
            (AttemptRole::First, AttemptOutcome::HedgeLost, 150, true),
            (AttemptRole::Hedge, AttemptOutcome::Succeeded, 100, false)
        ]
    );
}

#[test]
fn drained_back_end_is_never_called() {
    let fleet = fleet(
        2,
        Policy::WeightedRandom,
        Settings::default(),
        |number, member| {
            member.candidate.weight = [0, 100][number];
        },
    );
    let mut world = World::new(&fleet, |_, _| broken(ErrorKind::Network, 5));
    world.play(requests(50), 1_000);
    assert!(world.calls.iter().all(|member| *member == 1));
}
