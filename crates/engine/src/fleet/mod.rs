//! The back-ends of an engine with their health and their budgets. A run requests its next back-end from the
//! fleet, which decides from one snapshot and can explain the decision. Time is an argument, so that
//! everything here can be simulated. No vendor is known here.

mod breaker;
mod histogram;
mod in_flight_guard;
mod instance;
mod member;
mod retry_budget;
mod selector;
mod settings;
#[cfg(test)]
pub(crate) mod test_fleet;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use ir::{Error, Request};

pub use in_flight_guard::InFlightGuard;
pub use member::Member;
pub use selector::{BackendSelector, NextBackend};
pub use settings::{Breaker, Hedge, Retry, Settings, Timeouts};

use self::breaker::BreakerDecision;
use self::instance::InstanceHealth;
use self::retry_budget::RetryBudget;
use crate::limits;
use crate::port::Upstream;
use crate::route::{
    self, Candidate, CandidateIndex, Explanation, HostPolicy, LoadSnapshot, PlanInput, Policy,
};

#[derive(Debug)]
pub struct Fleet {
    pool: CandidateIndex,
    /// Parallel to the candidates; `None` for those that cannot be called.
    upstreams: Vec<Option<Arc<dyn Upstream>>>,
    /// Parallel to the candidates.
    instances: Vec<InstanceHealth>,
    host: HostPolicy,
    settings: Settings,
    retries: RetryBudget,
    hedges: RetryBudget,
    mirrors: AtomicU32,
    /// Counts requests, for round-robin policies.
    sequence: AtomicU64,
}

impl Fleet {
    pub fn new(members: Vec<Member>, host: HostPolicy, settings: Settings) -> Self {
        let (candidates, upstreams): (Vec<_>, _) = members.into_iter().map(Member::into_parts).unzip();
        Self {
            instances: candidates.iter().map(|_| InstanceHealth::new()).collect(),
            pool: CandidateIndex::new(candidates),
            upstreams,
            host,
            settings,
            retries: RetryBudget::new(settings.retry.share, settings.retry.reserve),
            hedges: RetryBudget::new(settings.hedge.share, settings.hedge.reserve),
            mirrors: AtomicU32::new(0),
            sequence: AtomicU64::new(0),
        }
    }

    /// Back-ends that are tried in the given order for every request.
    pub fn in_order(upstreams: impl IntoIterator<Item = Arc<dyn Upstream>>) -> Self {
        let members = (0..).zip(upstreams).map(|(place, upstream)| {
            let mut member = Member::with_all_features(upstream);
            member.candidate.priority = -place;
            member
        });
        let host = HostPolicy {
            policy: Some(Policy::Priority),
            ..HostPolicy::default()
        };
        Self::new(members.collect(), host, Settings::default())
    }

    pub fn candidates(&self) -> &[Candidate] {
        self.pool.candidates()
    }

    pub fn upstream(&self, member: usize) -> Option<&Arc<dyn Upstream>> {
        self.upstreams.get(member)?.as_ref()
    }

    /// Token count of a text: the maximum over all callable models; `None` if one of them cannot count.
    pub fn count_tokens(&self, text: &str) -> Option<usize> {
        let mut most = None;
        for upstream in self.upstreams.iter().flatten() {
            most = most.max(Some(upstream.count_tokens(text)?));
        }
        most
    }

    pub fn host(&self) -> &HostPolicy {
        &self.host
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Load and health of all instances at this time, parallel to the candidates.
    pub fn signals(&self, now_ms: u64) -> Vec<LoadSnapshot> {
        self.instances
            .iter()
            .map(|instance| instance.signals(now_ms))
            .collect()
    }

    /// The order in which this request would try the back-ends, and why others are excluded. Changes no
    /// state.
    pub fn explain(
        &self,
        request: &Request,
        seed: u64,
        turn: u64,
        now_ms: u64,
    ) -> Result<Explanation, Error> {
        let needs = route::needs(request);
        let mut facts = PlanInput::of(request, &needs, &self.host)?;
        facts.seed = seed;
        facts.turn = turn;
        let signals = self.signals(now_ms);
        Ok(Explanation::of(&self.pool, &signals, &facts, &self.host))
    }

    fn pool(&self) -> &CandidateIndex {
        &self.pool
    }

    fn next_sequence(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::Relaxed)
    }

    fn instance(&self, member: usize) -> &InstanceHealth {
        &self.instances[member]
    }

    /// Starts a call, if the instance accepts one now.
    fn begin(self: &Arc<Self>, member: usize, now_ms: u64) -> Option<InFlightGuard> {
        self.upstream(member)?;
        let most = self.candidates()[member].inflight_max;
        let admission = self.instance(member).begin(most, now_ms)?;
        let trial = admission == BreakerDecision::Probe;
        Some(InFlightGuard::new(self.clone(), member, trial, now_ms))
    }

    /// The same for a mirror copy.
    fn begin_mirror(self: &Arc<Self>, member: usize, now_ms: u64) -> Option<InFlightGuard> {
        let room = |count: u32| (count < limits::MIRRORS_MAX).then_some(count + 1);
        let counted = self
            .mirrors
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, room);
        counted.ok()?;
        let guard = self.begin(member, now_ms);
        match guard {
            Some(guard) => Some(guard.into_mirror()),
            None => {
                self.end_mirror();
                None
            }
        }
    }

    fn end_mirror(&self) {
        self.mirrors.fetch_sub(1, Ordering::Relaxed);
    }

    /// Adds the share of a first call to both budgets.
    fn earn(&self) {
        self.retries.deposit();
        self.hedges.deposit();
    }

    fn retries(&self) -> &RetryBudget {
        &self.retries
    }

    fn hedges(&self) -> &RetryBudget {
        &self.hedges
    }
}
