//! Fleets for tests of state machines: the test supplies the events of the back-ends, no stream is ever
//! opened.

use std::sync::Arc;

use futures::StreamExt;
use ir::Request;

use super::{Fleet, Member, Settings};
use crate::port::{Backend, EventStream, EventUpstream, Upstream};
use crate::route::{HostPolicy, Policy};

#[derive(Debug)]
struct StubUpstream(Backend);

impl EventUpstream for StubUpstream {
    fn backend(&self) -> &Backend {
        &self.0
    }

    fn stream(&self, _: Arc<Request>) -> EventStream {
        futures::stream::pending().boxed()
    }
}

/// `b0` with model `m0`, and so on.
pub(crate) fn members(count: usize) -> Vec<Member> {
    let member = |number: usize| {
        let backend = Backend {
            name: format!("b{number}"),
            kind: String::from("test"),
            model: Some(format!("m{number}")),
        };
        Member::with_all_features(Arc::new(StubUpstream(backend)))
    };
    (0..count).map(member).collect()
}

pub(crate) fn upstream(name: &str) -> Arc<dyn Upstream> {
    Arc::new(StubUpstream(Backend {
        name: String::from(name),
        kind: String::from("test"),
        model: None,
    }))
}

pub(crate) fn with_policy(count: usize, policy: Policy, settings: Settings) -> Arc<Fleet> {
    let mut members = members(count);
    if policy == Policy::Priority {
        for (place, member) in (0..).zip(&mut members) {
            member.candidate.priority = -place;
        }
    }
    let host = HostPolicy {
        policy: Some(policy),
        ..HostPolicy::default()
    };
    Arc::new(Fleet::new(members, host, settings))
}

/// In order, without retries on the same instance.
pub(crate) fn once_each(count: usize) -> Arc<Fleet> {
    let mut settings = Settings::default();
    settings.retry.same_max = 0;
    with_policy(count, Policy::Priority, settings)
}
