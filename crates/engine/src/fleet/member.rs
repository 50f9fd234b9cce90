//! One back-end of a fleet: what the router knows of it, and how it is called.

use std::collections::BTreeSet;
use std::sync::Arc;

use ir::operation::{Feature, Operation, Transport};

use crate::port::Upstream;
use crate::route::Candidate;

#[derive(Clone, Debug)]
pub struct Member {
    pub candidate: Candidate,
    /// `None` where the candidate is unavailable: it is listed, and never opened.
    upstream: Option<Arc<dyn Upstream>>,
}

impl Member {
    pub fn new(candidate: Candidate, upstream: Arc<dyn Upstream>) -> Self {
        Self {
            candidate,
            upstream: Some(upstream),
        }
    }

    /// One that cannot be called, such as for a missing secret.
    pub fn unavailable(mut candidate: Candidate, reason: impl Into<String>) -> Self {
        candidate.unavailable = Some(reason.into());
        Self {
            candidate,
            upstream: None,
        }
    }

    /// One back-end with several keys: an instance for each, under one name and with one share of the work.
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

    /// One that is asked for anything, such as a script.
    pub fn with_all_features(upstream: Arc<dyn Upstream>) -> Self {
        let backend = upstream.backend();
        let mut candidate = Candidate::new(&backend.name, &backend.kind, Operation::ChatCompletions);
        candidate.model.clone_from(&backend.model);
        candidate.operations = BTreeSet::from(Operation::ALL);
        candidate.features = Feature::all().into_iter().collect();
        // What answers anything says the same whatever it is given to go on with.
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
