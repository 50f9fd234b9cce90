//! A back-end as the router sees it: abilities and current load.

use std::collections::BTreeSet;

use ir::operation::{Feature, Operation, Transport};
use ir::{GenerationOptions, Price};

/// The constant part of an instance. Features belong to an instance, not to its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub name: String,
    pub kind: String,
    /// Number of the key, if several keys share the name, and the number of keys.
    pub key: u32,
    pub keys: u32,
    /// The only model it serves; `None` serves any.
    pub model: Option<String>,
    pub operations: BTreeSet<Operation>,
    pub features: BTreeSet<Feature>,
    pub transports: BTreeSet<Transport>,
    /// Share of the work in its pool; 0 accepts no new work.
    pub weight: u32,
    /// Higher is tried first; equal priorities form a pool.
    pub priority: i32,
    pub region: Option<String>,
    /// Price of its tokens, if known.
    pub price: Option<Price>,
    /// Maximum number of concurrent calls.
    pub inflight_max: Option<u32>,
    /// Settings of the model that apply where neither the request nor the module has one.
    pub generation: GenerationOptions,
    /// Why it cannot be called at all, for instance a missing secret.
    pub unavailable: Option<String>,
}

impl Candidate {
    /// A candidate for `operation` over HTTP with default weight and no restrictions.
    pub fn new(name: impl Into<String>, kind: impl Into<String>, operation: Operation) -> Self {
        Self {
            name: name.into(),
            kind: kind.into(),
            key: 0,
            keys: 1,
            model: None,
            operations: BTreeSet::from([operation]),
            features: BTreeSet::new(),
            transports: BTreeSet::from([Transport::Http]),
            weight: 100,
            priority: 0,
            region: None,
            price: None,
            inflight_max: None,
            generation: GenerationOptions::default(),
            unavailable: None,
        }
    }

    /// Price of a million input and a million output tokens together, for comparison.
    pub fn price_usd(&self) -> Option<f64> {
        self.price?.together_usd()
    }

    /// Stable across machines and versions, and different for each key of one name.
    pub(super) fn hash(&self) -> u64 {
        let name = super::score::hash(self.name.as_bytes());
        match self.key {
            0 => name,
            key => name ^ super::score::mix(u64::from(key)),
        }
    }
}

/// Current load and health of an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadSnapshot {
    pub inflight: u32,
    /// Time to the first token, smoothed; `None` before the first answer.
    pub latency_ms: Option<f64>,
    /// The breaker is open: the last calls failed.
    pub tripped: bool,
    /// Remaining time of a rate limit; 0 if there is none.
    pub limited_ms: u64,
    /// Its key was refused lately: it is tried after the others.
    pub key_refused: bool,
}
