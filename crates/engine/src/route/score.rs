//! Scores of eligible back-ends. Smaller is better in all of them, so that one sort serves every policy.

use super::candidate::{Candidate, LoadSnapshot};
use super::plan::PlanInput;
use super::policy::Policy;

/// A number in (0, 1) for each pair of seed and index.
pub fn draw(seed: u64, place: u64) -> f64 {
    // 53 bits fill the mantissa of an `f64`; the half step excludes 0.
    ((mix(seed ^ place) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// The score of a candidate under a policy that scores candidates independently.
pub(super) fn policy_score(
    policy: &Policy,
    candidate: &Candidate,
    hash: u64,
    signals: &LoadSnapshot,
    facts: &PlanInput<'_>,
) -> f64 {
    let weight = f64::from(candidate.weight) / f64::from(candidate.keys.max(1));
    match policy {
        // The minimum of exponentially distributed numbers selects each candidate in proportion to its
        // weight, and the rest of the order is a fair draw without replacement.
        Policy::WeightedRandom => -draw(facts.seed, hash).ln() / weight,
        Policy::ConsistentHash(_) => -draw(facts.affinity, hash).ln() / weight,
        Policy::LeastInflight => f64::from(signals.inflight) / weight,
        Policy::EwmaLatency | Policy::Hedged { .. } | Policy::Mirror { .. } => {
            // Unknown latency counts as fast, so that a new back-end is tried; calls in flight delay the next
            // one.
            signals.latency_ms.unwrap_or(0.0).max(0.01) * f64::from(signals.inflight + 1) / weight
        }
        Policy::Cost => candidate.price_usd().unwrap_or(f64::INFINITY),
        Policy::Priority | Policy::RoundRobin | Policy::WeightedRoundRobin => 0.0,
    }
}

/// FNV-1a: short, and stable across machines and versions.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The finaliser of splitmix64: every output bit depends on every input bit.
pub(super) fn mix(mut bits: u64) -> u64 {
    bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
