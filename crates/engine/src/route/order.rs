//! The order in which eligible back-ends are tried: preferred ones, then higher priority, then those that
//! lack least, then what the policy says. Only as many as a run may ever try are sorted out of the crowd.

use std::cmp::Ordering;

use super::candidate::{Candidate, LoadSnapshot};
use super::plan::PlanInput;
use super::policy::Policy;
use super::pool::CandidateKey;
use super::score::{draw, mix, policy_score};
use crate::limits;

/// One eligible candidate with what decides its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SortKey {
    pub(super) index: usize,
    /// Features it lacks that the request can do without.
    pub(super) missing_optional: usize,
    /// Position among the preferred, or behind them all.
    pub(super) preference: usize,
    pub(super) far: bool,
    pub(super) priority: i32,
    pub(super) score: f64,
    /// Breaks ties, so that equals share the work.
    pub(super) tie: f64,
}

impl SortKey {
    fn compare(&self, other: &Self) -> Ordering {
        self.preference
            .cmp(&other.preference)
            .then(other.priority.cmp(&self.priority))
            .then(self.missing_optional.cmp(&other.missing_optional))
            .then(self.far.cmp(&other.far))
            .then(self.score.total_cmp(&other.score))
            .then(self.tie.total_cmp(&other.tie))
            .then(self.index.cmp(&other.index))
    }

    /// Whether two stand in the same pool, where only the policy tells them apart.
    fn same_pool(&self, other: &Self) -> bool {
        (self.missing_optional, self.preference, self.priority, self.far)
            == (other.missing_optional, other.preference, other.priority, other.far)
    }
}

pub(super) fn rank(
    (index, candidate, marks): (usize, &Candidate, &CandidateKey),
    signals: &LoadSnapshot,
    policy: &Policy,
    facts: &PlanInput<'_>,
) -> SortKey {
    let needs = facts.needs;
    let preferred = &needs.preferred_backends;
    let position = preferred.iter().position(|name| *name == candidate.name);
    let far = facts
        .region
        .is_some_and(|wanted| candidate.region.as_deref() != Some(wanted));
    SortKey {
        index,
        missing_optional: facts.wanted.lacking(marks),
        preference: position.unwrap_or(preferred.len()),
        far,
        priority: candidate.priority,
        score: policy_score(policy, candidate, marks.hash, signals, facts),
        tie: draw(facts.seed, marks.hash),
    }
}

/// The best places in order, at most [`limits::ATTEMPTS_MAX`] of them.
pub(super) fn best(
    mut places: Vec<SortKey>,
    candidates: &[Candidate],
    policy: &Policy,
    facts: &PlanInput<'_>,
) -> Vec<SortKey> {
    rotate(&mut places, candidates, policy, facts);
    let count = limits::ATTEMPTS_MAX as usize;
    if places.len() > count {
        places.select_nth_unstable_by(count - 1, SortKey::compare);
        places.truncate(count);
    }
    places.sort_by(SortKey::compare);
    places
}

/// Into so many parts a turn can be divided evenly among keys, whether they are two or ten.
const KEY_PARTS: u64 = 2_520;

/// The two policies that take turns need to see their whole pool: who begins follows from the turn, the
/// others follow in the order of the list.
fn rotate(places: &mut [SortKey], candidates: &[Candidate], policy: &Policy, facts: &PlanInput<'_>) {
    let weighted = match policy {
        Policy::RoundRobin => false,
        Policy::WeightedRoundRobin => true,
        _ => return,
    };
    let Some(first) = places
        .iter()
        .copied()
        .min_by(|a, b| SortKey { score: 0.0, ..*a }.compare(&SortKey { score: 0.0, ..*b }))
    else {
        return;
    };
    let in_pool: Vec<usize> = (0..places.len())
        .filter(|at| places[*at].same_pool(&first))
        .collect();
    // The keys of one back-end share its turns.
    let width = |at: usize| {
        let candidate = &candidates[places[at].index];
        let weight = if weighted { u64::from(candidate.weight) } else { 1 };
        weight * KEY_PARTS / u64::from(candidate.keys.max(1))
    };
    let common = in_pool
        .iter()
        .fold(0, |common, at| gcd(common, width(*at)))
        .max(1);
    let share = |at: usize| width(at) / common;
    let total: u64 = in_pool.iter().map(|at| share(*at)).sum();
    let mut slot = spread(facts.turn, total);
    let start = in_pool.iter().position(|at| {
        let width = share(*at);
        let here = slot < width;
        slot = slot.wrapping_sub(width);
        here
    });
    let start = start.unwrap_or(0);
    for (step, at) in in_pool.iter().cycle().skip(start).take(in_pool.len()).enumerate() {
        places[*at].score = step as f64;
    }
}

/// Turn to slot: within every `total` turns each slot is met once, and neighbours in time are far apart, so
/// that a heavy back-end is not called many times in a row.
fn spread(turn: u64, total: u64) -> u64 {
    if total == 0 {
        return 0;
    }
    let mut step = ((total as f64 * 0.618).round() as u64).max(1);
    while gcd(step, total) != 1 {
        step += 1;
    }
    ((u128::from(turn) * u128::from(step)) % u128::from(total)) as u64
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A key for things that are to stay together.
pub(super) fn affinity(text: &str) -> u64 {
    mix(super::score::hash(text.as_bytes()))
}
