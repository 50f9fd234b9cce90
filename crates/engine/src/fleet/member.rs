//! One back-end of a fleet: its candidate for the router, and the upstream that calls it.

use std::collections::BTreeSet;
use std::sync::Arc;

use ir::operation::{Feature, Operation, Transport};

use crate::port::Upstream;
use crate::route::Candidate;

#[derive(Clone, Debug)]
pub struct Member {
    pub candidate: Candidate,
    /// `None` if the candidate is unavailable: it is listed, and never called.
    upstream: Option<Arc<dyn Upstream>>,
}

impl Member {
    pub fn new(candidate: Candidate, upstream: Arc<dyn Upstream>) -> Self {
        Self {
            candidate,
            upstream: Some(upstream),
        }
    }

    /// A back-end that cannot be called, for instance because a secret is missing.
    pub fn unavailable(mut candidate: Candidate, reason: impl Into<String>) -> Self {
        candidate.unavailable = Some(reason.into());
        Self {
            candidate,
            upstream: None,
        }
    }

    /// One back-end with several keys: one instance per key, which share the name and the weight.
    pub fn pool(candidate: &Candidate, upstreams: Vec<Arc<dyn Upstream>>) -> Vec<Self> {
        let size = u32::try_from(upstreams.len()).unwrap_or(u32::MAX);
        let members = (0..).zip(upstreams).map(|(key, upstream)| {
            let mut candidate = candidate.clone();
            candidate.key = key;
            candidate.keys = size;
            Self::new(candidate, upstream)
        });
        members.collect()
    }

    /// A back-end with all features, for instance a script.
    pub fn with_all_features(upstream: Arc<dyn Upstream>) -> Self {
        let backend = upstream.backend();
        let mut candidate = Candidate::new(&backend.name, &backend.kind, Operation::ChatCompletions);
        candidate.model.clone_from(&backend.model);
        candidate.operations = BTreeSet::from(Operation::ALL);
        candidate.features = Feature::all().into_iter().collect();
        // A back-end with fixed answers cannot continue a text.
        candidate.features.remove(&Feature::Prefill);
        candidate.transports = BTreeSet::from([
            Transport::Http,
            Transport::Websocket,
            Transport::Grpc,
            Transport::InProcess,
        ]);
        Self::new(candidate, upstream)
    }

    pub(super) fn into_parts(self) -> (Candidate, Option<Arc<dyn Upstream>>) {
        (self.candidate, self.upstream)
    }
}
