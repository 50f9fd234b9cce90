//! A back-end as the router sees it: what it can do, and how it is doing.

use std::collections::BTreeSet;

use ir::Price;
use ir::operation::{Feature, Operation, Transport};

/// What does not change between two requests. An ability belongs to an instance, not to its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub name: String,
    pub kind: String,
    /// Which of its keys, where several share the name, and how many there are.
    pub key: u32,
    pub keys: u32,
    /// The only model it answers with; `None` answers with any.
    pub model: Option<String>,
    pub operations: BTreeSet<Operation>,
    pub features: BTreeSet<Feature>,
    pub transports: BTreeSet<Transport>,
    /// Share of the work among equals; 0 takes no new work.
    pub weight: u32,
    /// Higher is tried first; equals form a pool.
    pub priority: i32,
    pub region: Option<String>,
    /// What its tokens cost, where it is known.
    pub price: Option<Price>,
    /// Most calls at once.
    pub inflight_max: Option<u32>,
    /// Why it cannot be called at all, such as a missing secret.
    pub unavailable: Option<String>,
}

impl Candidate {
    /// One that can do `operation` over HTTP, with usual weight and no ties.
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
            unavailable: None,
        }
    }

    /// Price of a million tokens in and out together, to compare by.
    pub fn price_usd(&self) -> Option<f64> {
        self.price?.together_usd()
    }

    /// The same on every machine for ever, and different for each key of one name.
    pub(super) fn hash(&self) -> u64 {
        let name = super::score::hash(self.name.as_bytes());
        match self.key {
            0 => name,
            key => name ^ super::score::mix(u64::from(key)),
        }
    }
}

/// How an instance is doing right now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadSnapshot {
    pub inflight: u32,
    /// Time to the first token, smoothed; `None` before the first answer.
    pub latency_ms: Option<f64>,
    /// The circuit is open: the last calls failed.
    pub tripped: bool,
    /// For how long it has said that it takes no more; 0 when it does.
    pub limited_ms: u64,
}
