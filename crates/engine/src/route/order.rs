//! Rank of eligible back-ends: preferred ones, then higher priority, then fewest missing optional features,
//! then those whose key was not refused lately, then the score of the policy. Only as many as a run may try are sorted.

use std::cmp::Ordering;

use super::candidate::{Candidate, LoadSnapshot};
use super::plan::PlanInput;
use super::policy::Policy;
use super::pool::CandidateKey;
use super::score::{draw, mix, policy_score};
use crate::limits;

/// The sort key of an eligible candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SortKey {
    pub(super) index: usize,
    /// Number of missing optional features.
    pub(super) missing_optional: usize,
    /// Position among the preferred back-ends; larger than all of them if not preferred.
    pub(super) preference: usize,
    pub(super) far: bool,
    pub(super) key_refused: bool,
    pub(super) priority: i32,
    pub(super) score: f64,
    /// Breaks ties, so that equal candidates share the work.
    pub(super) tie: f64,
}

impl SortKey {
    fn compare(&self, other: &Self) -> Ordering {
        self.preference
            .cmp(&other.preference)
            .then(other.priority.cmp(&self.priority))
            .then(self.missing_optional.cmp(&other.missing_optional))
            .then(self.far.cmp(&other.far))
            .then(self.key_refused.cmp(&other.key_refused))
            .then(self.score.total_cmp(&other.score))
            .then(self.tie.total_cmp(&other.tie))
            .then(self.index.cmp(&other.index))
    }

    /// Whether two candidates are in the same pool, where only the policy distinguishes them.
    fn same_pool(&self, other: &Self) -> bool {
        let pool = |one: &Self| {
            (
                one.missing_optional,
                one.preference,
                one.priority,
                one.far,
                one.key_refused,
            )
        };
        pool(self) == pool(other)
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
        key_refused: signals.key_refused,
        priority: candidate.priority,
        score: policy_score(policy, candidate, marks.hash, signals, facts),
        tie: draw(facts.seed, marks.hash),
    }
}

/// The best candidates in order, at most [`limits::ATTEMPTS_MAX`].
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

/// Slots per unit of weight: divisible by every number of keys from one to ten.
const KEY_PARTS: u64 = 2_520;

/// The two round-robin policies require the complete pool: the turn selects the first candidate, the others
/// follow in configured order.
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
    // The keys of one back-end share its slots.
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

/// Maps turn to slot: every `total` turns visit each slot once, and consecutive turns are far apart, so that
/// a candidate with a large weight is not called many times in a row.
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

/// Hash of an affinity key.
pub(super) fn affinity(text: &str) -> u64 {
    mix(super::score::hash(text.as_bytes()))
}
