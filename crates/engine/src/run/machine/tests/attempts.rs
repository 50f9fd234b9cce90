//! The retry loop, hedges and records of one run.

use std::sync::Arc;

use ir::error::Phase;
use ir::event::FinishReason;
use ir::operation::Feature;
use ir::{Error, ErrorKind, Event, Request, Usage};
use serde_json::{Value, json};

use super::{REPLY, Sim, expected_data, is_take_back, plan, request};
use crate::fleet::test_fleet::{members, once_each, upstream, with_policy};
use crate::fleet::{Fleet, Member, Settings};
use crate::route::{HostPolicy, Policy};
use crate::run::command::RunMode;
use crate::run::machine::{Input, MachineConfig};
use crate::run::record::{AttemptOutcome, AttemptRole};

pub(super) fn in_order(count: usize) -> Arc<Fleet> {
    with_policy(count, Policy::Priority, Settings::default())
}

fn hedged(count: usize, k: u32) -> Arc<Fleet> {
    with_policy(count, Policy::Hedged { k, delay_ms: 50 }, Settings::default())
}

fn limited(retry_after_ms: u64) -> Error {
    let mut error = Error::new(ErrorKind::RateLimited, Phase::BeforeFirstByte, "slow down").with_status(429);
    error.retry_after_ms = Some(retry_after_ms);
    error
}

fn usage() -> Usage {
    Usage {
        input_tokens: Some(5),
        output_tokens: Some(7),
        ..Usage::default()
    }
}

#[test]
fn single_back_end_is_retried_with_backoff_up_to_the_limit() {
    let mut sim = Sim::with(&in_order(1), plan());
    sim.fail(ErrorKind::Network);
    assert_eq!(sim.opened, [0], "not at once");
    sim.pass(250);
    assert_eq!(sim.opened, [0, 0]);
    sim.fail(ErrorKind::Network);
    sim.pass(500);
    assert_eq!(sim.opened, [0, 0, 0]);
    sim.fail(ErrorKind::Network);
    assert_eq!(sim.code(), "E4001");
    let roles: Vec<AttemptRole> = sim.trace().attempts.iter().map(|attempt| attempt.role).collect();
    assert_eq!(
        roles,
        [AttemptRole::First, AttemptRole::Retry, AttemptRole::Retry]
    );
}

#[test]
fn rate_limited_back_end_is_retried_only_after_all_others() {
    let mut sim = Sim::with(&in_order(2), plan());
    sim.fail_with(limited(3_000));
    assert_eq!(sim.opened, [0, 1], "another one is called at once");
    sim.fail(ErrorKind::Auth);
    sim.pass(2_999);
    assert_eq!(sim.opened, [0, 1], "a refused key is not tried again");
    sim.pass(300);
    assert_eq!(sim.opened, [0, 1, 0]);
    sim.text(REPLY);
    sim.finish(FinishReason::Stop);
    assert_eq!(sim.assemble().envelope["data"], expected_data());
}

#[test]
fn backoff_beyond_the_deadline_fails_at_once() {
    let mut sim = Sim::with(&in_order(1), plan());
    sim.fail_with(limited(400_000));
    assert_eq!(sim.code(), "E4002");
    let details = &sim.assemble().envelope["error"]["details"];
    assert!(details["retry_after_ms"].as_u64() >= Some(400_000));
    assert_eq!(details["upstream_status"], 429);
}

/// Text sent before the backoff stays with the clients until the next attempt resets it.
#[test]
fn truncated_stream_is_reset_when_the_next_attempt_starts() {
    let mut sim = Sim::with(&in_order(1), plan());
    sim.text(REPLY.get(..100).unwrap());
    sim.ended();
    assert!(!sim.chunks.iter().any(is_take_back));
    sim.pass(250);
    assert_eq!(sim.opened, [0, 0]);
    assert_eq!(sim.chunks.iter().filter(|chunk| is_take_back(chunk)).count(), 1);
    sim.text(REPLY);
    sim.finish(FinishReason::Stop);
    assert_eq!(sim.assemble().envelope["data"], expected_data());
}

#[test]
fn refusal_excludes_back_ends_with_the_same_model() {
    let mut list = members(3);
    list[1].candidate.model = Some(String::from("m0"));
    for (place, member) in (0..).zip(&mut list) {
        member.candidate.priority = -place;
    }
    let host = HostPolicy {
        policy: Some(Policy::Priority),
        ..HostPolicy::default()
    };
    let fleet = Arc::new(Fleet::new(list, host, Settings::default()));
    let mut sim = Sim::with(&fleet, plan());
    sim.fail(ErrorKind::ContextWindow);
    assert_eq!(sim.opened, [0, 2], "b1 has the same model");
    sim.event(
        sim.latest(),
        Event::Finish {
            reason: FinishReason::ContentFilter,
        },
    );
    sim.ended();
    assert_eq!(sim.code(), "E2004", "a filtered answer is a failure");
}

#[test]
fn unsupported_feature_fails_before_any_attempt() {
    let mut member = Member::with_all_features(upstream("blind"));
    member.candidate.features.remove(&Feature::ImageInput);
    let missing = Member::unavailable(members(1).remove(0).candidate, "OPENAI_API_KEY is not set");
    let fleet = Arc::new(Fleet::new(
        vec![member, missing],
        HostPolicy::default(),
        Settings::default(),
    ));
    let mut request = Request::clone(&request());
    request.requirements.required_features.insert(Feature::ImageInput);
    let sim = Sim::asking(Arc::new(request), &fleet, plan(), 0);
    assert_eq!(sim.opened, [0; 0]);
    assert_eq!(sim.code(), "E4011");
    let rejected = &sim.assemble().envelope["error"]["details"]["rejected"];
    assert_eq!(rejected["blind"], "lacks supports_image_input");
    assert_eq!(rejected["b0"], "unavailable: OPENAI_API_KEY is not set");
}

#[test]
fn every_stage_has_its_own_timeout() {
    let mut settings = Settings::default();
    settings.retry.same_max = 0;
    settings.timeouts.first_byte_ms = 1_000;
    settings.timeouts.idle_ms = 400;
    settings.timeouts.total_ms = 2_000;
    let fleet = with_policy(3, Policy::Priority, settings);
    let mut sim = Sim::with(&fleet, plan());
    sim.pass(1_000);
    assert_eq!(sim.opened, [0, 1], "no first byte");
    sim.text("{");
    sim.pass(400);
    assert_eq!(sim.opened, [0, 1, 2], "stalled");
    for _ in 0..10 {
        sim.text(" ");
        sim.pass(200);
    }
    assert_eq!(sim.code(), "E2011", "total timeout");
    let phases: Vec<String> = sim
        .trace()
        .attempts
        .iter()
        .map(|attempt| attempt.error.as_ref().unwrap().message.clone())
        .collect();
    assert_eq!(
        phases,
        [
            "no response from the back-end",
            "back-end stream stalled",
            "attempt exceeded its total timeout"
        ]
    );
}

#[test]
fn first_hedge_with_output_leads_and_the_other_is_cancelled() {
    let mut sim = Sim::with(&hedged(3, 2), plan());
    let first = sim.latest();
    sim.pass(49);
    assert_eq!(sim.open.len(), 1);
    sim.pass(1);
    assert_eq!(sim.open.len(), 2, "a second one after the delay");
    sim.pass(1_000);
    assert_eq!(sim.open.len(), 2, "never more than k");
    let second = sim.latest();
    sim.text(REPLY);
    assert_eq!(sim.open, [(second, sim.opened[1])]);
    // Events of the cancelled attempt are ignored.
    sim.event(first, Event::text(0, "nonsense"));
    sim.event(second, Event::Usage { usage: usage() });
    sim.finish(FinishReason::Stop);
    assert_eq!(sim.assemble().envelope["data"], expected_data());
    let trace = sim.trace();
    assert_eq!(trace.attempts[0].outcome, AttemptOutcome::HedgeLost);
    assert_eq!(trace.attempts[0].usage, None);
    assert!(
        trace.attempts[0]
            .estimate
            .as_ref()
            .is_some_and(|usage| usage.estimated)
    );
    assert_eq!(trace.attempts[1].usage, Some(usage()));
    assert_eq!(trace.attempts[1].estimate, None);
}

#[test]
fn failed_attempt_leaves_its_hedge_running() {
    let mut sim = Sim::with(&hedged(2, 2), plan());
    let first = sim.latest();
    sim.pass(50);
    let error = Error::new(ErrorKind::Upstream, Phase::BeforeFirstByte, "it broke");
    sim.event(first, Event::Error { error });
    assert_eq!(sim.opened.len(), 2, "the other one is still under way");
    sim.text(REPLY);
    sim.finish(FinishReason::Stop);
    assert_eq!(sim.assemble().envelope["data"], expected_data());
}

#[test]
fn cancelled_attempt_has_an_estimate_instead_of_usage() {
    let mut sim = Sim::with(&once_each(1), plan());
    sim.event(sim.latest(), Event::Usage { usage: usage() });
    sim.text(REPLY.get(..80).unwrap());
    sim.step(Input::Cancel);
    let record = sim.trace().attempts.remove(0);
    assert_eq!((record.outcome, record.usage), (AttemptOutcome::Cancelled, None));
    let estimate = record.estimate.unwrap();
    assert!(estimate.estimated);
    assert_eq!(
        (estimate.input_tokens, estimate.output_tokens),
        (Some(5), Some(20))
    );
}

#[test]
fn failed_attempt_completes_the_usage_that_it_reported() {
    let early = Usage {
        cache_read_tokens: Some(3),
        ..usage()
    };
    let fail = |output: &str, usage: Usage| {
        let mut sim = Sim::with(&once_each(1), plan());
        sim.event(sim.latest(), Event::Usage { usage });
        if !output.is_empty() {
            sim.text(output);
        }
        sim.fail(ErrorKind::Network);
        sim.trace().attempts.remove(0)
    };
    let record = fail(REPLY.get(..80).unwrap(), early.clone());
    assert_eq!((record.outcome, record.usage), (AttemptOutcome::Failed, None));
    let counted = Usage {
        output_tokens: Some(20),
        estimated: true,
        ..early.clone()
    };
    assert_eq!(record.estimate, Some(counted));
    // No output followed: nothing is missing.
    let record = fail("", early.clone());
    assert_eq!((record.usage, record.estimate), (Some(early), None));
    // The input alone was reported and is billed, although the attempt wrote nothing.
    let input = Usage {
        output_tokens: None,
        ..usage()
    };
    let estimate = fail("", input).estimate.unwrap();
    assert_eq!(
        (estimate.input_tokens, estimate.output_tokens),
        (Some(5), Some(0))
    );
}

#[test]
fn usage_reports_replace_each_other() {
    let mut sim = Sim::with(&once_each(1), plan());
    let early = Usage {
        input_tokens: Some(5),
        output_tokens: Some(1),
        ..Usage::default()
    };
    sim.event(sim.latest(), Event::Usage { usage: early });
    sim.text(REPLY);
    sim.event(sim.latest(), Event::Usage { usage: usage() });
    sim.finish(FinishReason::Stop);
    assert_eq!(sim.trace().attempts[0].usage, Some(usage()));
}

#[test]
fn same_seed_gives_the_same_attempts() {
    let attempts = || {
        let fleet = with_policy(5, Policy::WeightedRandom, Settings::default());
        let mut sim = Sim::with(
            &fleet,
            MachineConfig {
                mode: RunMode::Sync,
                ..plan()
            },
        );
        while sim.finishes.is_empty() {
            if sim.open.is_empty() {
                sim.pass(100);
            } else {
                sim.fail(ErrorKind::Network);
            }
        }
        (sim.opened.clone(), sim.now_ms)
    };
    assert_eq!(attempts(), attempts());
}

#[test]
fn backend_fills_in_generation_settings_and_every_answer_is_limited() {
    let mut members = members(2);
    members[0].candidate.generation = serde_json::from_value(json!({
        "max_output_tokens": 77, "temperature": 0.5, "stop": ["END"]
    }))
    .unwrap();
    members[0].candidate.priority = 1;
    let host = HostPolicy {
        policy: Some(Policy::Priority),
        ..HostPolicy::default()
    };
    let fleet = Arc::new(Fleet::new(members, host, Settings::default()));
    let generation = |request: &Arc<Request>| {
        let generation = &request.as_chat().unwrap().generation;
        json!([
            generation.max_tokens,
            generation.temperature,
            generation.seed,
            generation.stop
        ])
    };
    let mut sim = Sim::with(&fleet, plan());
    sim.fail(ErrorKind::Network);
    let sent: Vec<Value> = sim.requests.iter().map(generation).collect();
    assert_eq!(sent.first(), Some(&json!([77, 0.5, null, ["END"]])));
    assert_eq!(sent.last(), Some(&json!([4096, null, null, []])));

    let mut own = Request::clone(&request());
    if let ir::Payload::Chat(chat) = &mut own.payload {
        chat.generation.max_tokens = Some(10);
        chat.generation.seed = Some(3.into());
    }
    let sim = Sim::asking(Arc::new(own), &fleet, plan(), 0);
    assert_eq!(generation(&sim.requests[0]), json!([10, 0.5, 3, ["END"]]));
}
