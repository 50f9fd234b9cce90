//! The back-ends of an engine: who they are, how each is doing, and what they may cost together. A run asks
//! the fleet for its next back-end; the fleet answers from one snapshot and can say why. Time is a number
//! that the caller brings along, so that everything here can be simulated. No vendor is known here.

mod member;
mod settings;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ir::{Error, Request};

pub use member::Member;
pub use settings::{Breaker, Hedge, Retry, Settings, Timeouts};

use crate::port::Upstream;
use crate::route::{self, Candidate, Explanation, Facts, Host, Plan, Policy, Signals};

#[derive(Debug)]
pub struct Fleet {
    candidates: Vec<Candidate>,
    /// Beside the candidates; `None` for those that cannot be called.
    upstreams: Vec<Option<Arc<dyn Upstream>>>,
    host: Host,
    settings: Settings,
    /// Counts requests, for policies that take turns.
    turn: AtomicU64,
}

impl Fleet {
    pub fn new(members: Vec<Member>, host: Host, settings: Settings) -> Self {
        let (candidates, upstreams) = members.into_iter().map(Member::into_parts).unzip();
        Self {
            candidates,
            upstreams,
            host,
            settings,
            turn: AtomicU64::new(0),
        }
    }

    /// Back-ends that are tried in the order given, whatever is asked of them.
    pub fn in_order(upstreams: impl IntoIterator<Item = Arc<dyn Upstream>>) -> Self {
        let members = (0..).zip(upstreams).map(|(place, upstream)| {
            let mut member = Member::capable_of_all(upstream);
            member.candidate.priority = -place;
            member
        });
        let host = Host {
            policy: Some(Policy::Priority),
            ..Host::default()
        };
        Self::new(members.collect(), host, Settings::default())
    }

    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    pub fn upstream(&self, member: usize) -> Option<&Arc<dyn Upstream>> {
        self.upstreams.get(member)?.as_ref()
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Who is to be asked, in which order. Each call is a request of its own for those who take turns.
    pub fn plan(&self, request: &Request, seed: u64) -> Result<Plan, Error> {
        let needs = request.needs();
        let mut facts = Facts::of(request, &needs, &self.host);
        facts.seed = seed;
        facts.turn = self.turn.fetch_add(1, Ordering::Relaxed);
        route::plan(&self.candidates, &self.signals(), &facts, &self.host)
    }

    /// The same, with a reason for everyone; takes nobody's turn.
    pub fn explain(&self, request: &Request, seed: u64) -> Explanation {
        let needs = request.needs();
        let mut facts = Facts::of(request, &needs, &self.host);
        facts.seed = seed;
        facts.turn = self.turn.load(Ordering::Relaxed);
        Explanation::of(&self.candidates, &self.signals(), &facts, &self.host)
    }

    fn signals(&self) -> Vec<Signals> {
        vec![Signals::default(); self.candidates.len()]
    }
}
