//! Why a plan is what it is; computed only on request: on failure, for `--explain`, in a trace.

use std::collections::BTreeMap;

use serde::Serialize;

use super::candidate::LoadSnapshot;
use super::filter::{Rejection, reject};
use super::order::{best, rank};
use super::plan::{HostPolicy, PlanInput};
use super::policy::Policy;
use super::pool::CandidateIndex;

#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    pub policy: Policy,
    pub seed: u64,
    pub turn: u64,
    /// In the order in which they are tried.
    pub selected: Vec<Selected>,
    pub rejected: Vec<(String, Rejection)>,
}

/// A back-end in the plan, with the values that determine its rank.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Selected {
    /// Index of the candidate.
    #[serde(skip)]
    pub index: usize,
    pub name: String,
    pub kind: String,
    /// Number of its key.
    pub key: u32,
    pub model: Option<String>,
    pub priority: i32,
    pub weight: u32,
    /// Smaller is better; the unit depends on the policy.
    pub score: f64,
    pub lacks: Vec<String>,
    pub preferred: bool,
    pub inflight: u32,
    pub latency_ms: Option<f64>,
}

impl Explanation {
    /// Reason of the rejection per back-end.
    pub fn reasons(&self) -> BTreeMap<String, String> {
        let rejected = self.rejected.iter();
        rejected
            .map(|(name, reason)| (name.clone(), reason.to_string()))
            .collect()
    }

    pub fn of(
        pool: &CandidateIndex,
        signals: &[LoadSnapshot],
        facts: &PlanInput<'_>,
        host: &HostPolicy,
    ) -> Self {
        let healthy = LoadSnapshot::default();
        let mut rejected = Vec::new();
        let mut places = Vec::new();
        let candidates = pool.candidates();
        for one in pool.each() {
            let signals = signals.get(one.0).unwrap_or(&healthy);
            match reject(one, signals, facts, host) {
                Some(rejection) => rejected.push((one.1.name.clone(), rejection)),
                None => places.push(rank(one, signals, &facts.policy, facts)),
            }
        }
        let selected = best(places, candidates, &facts.policy, facts)
            .into_iter()
            .map(|place| {
                let candidate = &candidates[place.index];
                let signals = signals.get(place.index).unwrap_or(&healthy);
                let needs = facts.needs;
                let needed = needs.required_features.union(&needs.preferred_features);
                Selected {
                    index: place.index,
                    name: candidate.name.clone(),
                    kind: candidate.kind.clone(),
                    key: candidate.key,
                    model: candidate.model.clone(),
                    priority: candidate.priority,
                    weight: candidate.weight,
                    score: place.score,
                    lacks: needed
                        .filter(|feature| !candidate.features.contains(feature))
                        .map(ToString::to_string)
                        .collect(),
                    preferred: place.preference < facts.needs.preferred_backends.len(),
                    inflight: signals.inflight,
                    latency_ms: signals.latency_ms,
                }
            });
        Self {
            policy: facts.policy.clone(),
            seed: facts.seed,
            turn: facts.turn,
            selected: selected.collect(),
            rejected,
        }
    }
}
