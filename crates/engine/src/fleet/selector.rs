//! Back-end selection of one run: which back-end is called first, which after a failure, and when to wait.
//! The retry loop calls [`BackendSelector::next`]; no other code decides where a request is sent.
//! Deterministic in seed, inputs and times.

use std::sync::Arc;

use ir::envelope::Requirements;
use ir::error::{Phase, RetryScope};
use ir::{Error, ErrorKind, Request};

use super::in_flight_guard::InFlightGuard;
use super::{Fleet, Retry};
use crate::limits;
use crate::route::{self, Explanation, LoadSnapshot, PlanInput, Policy, RoutePlan};

/// Maximum jitter added to a pause, so that requests with the same retry-after do not all resume together.
const SPREAD_MAX_MS: u64 = 1_000;

#[derive(Debug)]
pub struct BackendSelector {
    fleet: Arc<Fleet>,
    request: Arc<Request>,
    needs: Requirements,
    /// The policy in effect; `None` if the request names an invalid one.
    policy: Option<Policy>,
    /// The order computed by `explain` for this time, used by the next selection.
    planned: Option<(u64, Vec<usize>)>,
    seed: u64,
    turn: u64,
    /// Start of the run on the fleet's clock. All other times here are relative to it.
    began_ms: u64,
    tried: Vec<FailedInstance>,
    /// Models that refused the request, excluded on every back-end.
    excluded_models: Vec<String>,
    /// The only models that may be used.
    models: Option<Vec<String>>,
    /// The only back-end that may be used.
    only: Option<String>,
    calls: u32,
    retries: u32,
}

/// An instance that has failed in this run.
#[derive(Clone, Copy, Debug)]
struct FailedInstance {
    member: usize,
    again: bool,
    ready_ms: u64,
}

#[derive(Debug)]
pub enum NextBackend {
    /// Call this instance. `is_retry` if it has failed in this run before.
    Use { guard: InFlightGuard, is_retry: bool },
    /// Call `next` again at this time.
    Wait { until_ms: u64 },
    /// No back-end is left, for this reason.
    Exhausted(Box<Error>),
}

impl BackendSelector {
    pub fn new(fleet: Arc<Fleet>, request: Arc<Request>, seed: u64, began_ms: u64) -> Self {
        Self {
            needs: route::needs(&request),
            policy: route::choose_policy(&request, fleet.host()).ok(),
            planned: None,
            turn: fleet.next_sequence(),
            fleet,
            request,
            seed,
            began_ms,
            tried: Vec::new(),
            excluded_models: Vec::new(),
            models: None,
            only: None,
            calls: 0,
            retries: 0,
        }
    }

    /// Restricts the models to those that the caller may use.
    pub fn allow_models(&mut self, models: Option<Vec<String>>) {
        self.models = models;
    }

    pub fn fleet(&self) -> &Arc<Fleet> {
        &self.fleet
    }

    pub fn request(&self) -> &Arc<Request> {
        &self.request
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    pub fn turn(&self) -> u64 {
        self.turn
    }

    pub fn policy(&self) -> Option<&Policy> {
        self.policy.as_ref()
    }

    /// Converts a time of the run to the fleet's clock.
    pub fn fleet_ms(&self, now_ms: u64) -> u64 {
        self.began_ms + now_ms
    }

    /// Explains the next selection.
    pub fn explain(&mut self, now_ms: u64) -> Result<Explanation, Error> {
        let tried: Vec<usize> = self.tried.iter().map(|tried| tried.member).collect();
        let signals = self.fleet.signals(self.fleet_ms(now_ms));
        let facts = self.facts(&tried)?;
        let why = Explanation::of(self.fleet.pool(), &signals, &facts, self.fleet.host());
        if !why.selected.is_empty() {
            let order = why.selected.iter().map(|selected| selected.index);
            self.planned = Some((now_ms, order.collect()));
        }
        Ok(why)
    }

    /// The next instance: first those that have not been tried, then one that may be retried.
    pub fn next(&mut self, now_ms: u64) -> NextBackend {
        let retry = self.fleet.settings().retry;
        let tried: Vec<usize> = self.tried.iter().map(|tried| tried.member).collect();
        let calls_max = retry.attempts_max.min(limits::ATTEMPTS_MAX);
        let order = match self.planned.take() {
            Some((at_ms, order)) if at_ms == now_ms && tried.is_empty() => Ok(order),
            _ => self.plan(&tried, now_ms).map(|plan| plan.order),
        };
        let error = match order {
            Ok(order) if self.calls < calls_max => match self.begin_any(&order, now_ms) {
                Some(guard) => return self.open(guard, false),
                None => Error::new(
                    ErrorKind::RateLimited,
                    Phase::BeforeSend,
                    "every back-end is busy",
                ),
            },
            Ok(_) => Error::new(
                ErrorKind::NoCandidate,
                Phase::BeforeSend,
                format!("{calls_max} attempts failed"),
            ),
            Err(error) => error,
        };
        if let Some(choice) = self.retry_failed(calls_max, &retry, now_ms) {
            return choice;
        }
        match error.retry_after_ms {
            Some(pause_ms) if self.tried.is_empty() => NextBackend::Wait {
                until_ms: now_ms + self.jittered_ms(pause_ms),
            },
            _ => NextBackend::Exhausted(Box::new(error)),
        }
    }

    /// An instance in addition to the `open` ones, if the hedge budget permits.
    pub fn hedge(&mut self, open: &[usize], now_ms: u64) -> Option<InFlightGuard> {
        let tried = self.tried.iter().map(|tried| tried.member);
        let taken: Vec<usize> = tried.chain(open.iter().copied()).collect();
        let plan = self.plan(&taken, now_ms).ok()?;
        if !self.fleet.hedges().try_withdraw() {
            return None;
        }
        let guard = self.begin_any(&plan.order, now_ms);
        match &guard {
            Some(_) => self.calls += 1,
            None => self.fleet.hedges().refund(),
        }
        guard
    }

    /// How long to wait for a first token before a hedge: the configured time, or the instance's own latency
    /// quantile if it is known and larger.
    pub fn hedge_delay_ms(&self, member: usize, at_least_ms: u64) -> u64 {
        let quantile = self.fleet.settings().hedge.quantile;
        let known = self.fleet.instance(member).first_token_quantile(quantile);
        at_least_ms.max(known.map_or(0, |ms| ms.ceil() as u64))
    }

    /// The mirror target, if the policy has one that is eligible and not too many copies are in flight.
    pub fn mirror(&self, now_ms: u64) -> Option<InFlightGuard> {
        if !matches!(self.policy, Some(Policy::Mirror { .. })) {
            return None;
        }
        let signals = self.fleet.signals(self.fleet_ms(now_ms));
        let mut facts = self.facts(&[]).ok()?;
        let Policy::Mirror { to } = std::mem::replace(&mut facts.policy, Policy::Priority) else {
            return None;
        };
        facts.only = Some(&to);
        let plan = route::plan(self.fleet.pool(), &signals, &facts, self.fleet.host()).ok()?;
        self.fleet
            .begin_mirror(*plan.order.first()?, self.fleet_ms(now_ms))
    }

    /// Records a failure. Returns whether another attempt may succeed.
    pub fn fail(&mut self, member: usize, error: &Error, now_ms: u64) -> bool {
        let scope = error.retry_scope();
        if scope == RetryScope::OtherModel {
            let model = self.fleet.candidates()[member].model.as_deref();
            let model = model.or_else(|| self.request.model());
            self.excluded_models.extend(model.map(String::from));
        }
        self.tried.retain(|tried| tried.member != member);
        let pause_ms = match error.retry_after_ms {
            Some(pause_ms) => self.jittered_ms(pause_ms).max(self.backoff_ms()),
            None => self.backoff_ms(),
        };
        self.tried.push(FailedInstance {
            member,
            again: scope == RetryScope::SameInstance,
            ready_ms: now_ms + pause_ms,
        });
        scope != RetryScope::Never
    }

    /// Restarts the selection, as for a reask: with another request, on all back-ends or on one only.
    pub fn restart(&mut self, request: Option<Arc<Request>>, only: Option<String>) {
        if let Some(request) = request {
            self.needs = route::needs(&request);
            self.policy = route::choose_policy(&request, self.fleet.host()).ok();
            self.request = request;
        }
        self.planned = None;
        self.only = only;
        self.tried.clear();
        self.excluded_models.clear();
        self.calls = 0;
        self.retries = 0;
    }

    /// Continues the selection with a request for the missing part of the answer. Failed instances may be
    /// retried only if they have the features that it requires in addition.
    pub fn continue_with(&mut self, request: Arc<Request>) {
        let needs = route::needs(&request);
        let more = needs.required_features.difference(&self.needs.required_features);
        let more: Vec<_> = more.collect();
        for tried in &mut self.tried {
            let features = &self.fleet.candidates()[tried.member].features;
            tried.again &= more.iter().all(|feature| features.contains(*feature));
        }
        self.needs = needs;
        self.policy = route::choose_policy(&request, self.fleet.host()).ok();
        self.planned = None;
        self.request = request;
    }

    /// This instance, if it accepts a call now.
    pub fn reserve_same(&mut self, member: usize, now_ms: u64) -> Option<InFlightGuard> {
        let guard = self.fleet.begin(member, self.fleet_ms(now_ms))?;
        self.calls += 1;
        Some(guard)
    }

    fn open(&mut self, guard: InFlightGuard, returning: bool) -> NextBackend {
        if self.calls == 0 {
            self.fleet.earn();
        }
        self.calls += 1;
        NextBackend::Use {
            guard,
            is_retry: returning,
        }
    }

    /// Retries the failed instance that is ready first, if its pause is over and the retry budget permits.
    fn retry_failed(&mut self, calls_max: u32, retry: &Retry, now_ms: u64) -> Option<NextBackend> {
        if self.calls >= calls_max || self.retries >= retry.same_max {
            return None;
        }
        let now_in_fleet_ms = self.fleet_ms(now_ms);
        let again = self.tried.iter().filter(|tried| tried.again);
        let ready = again.filter_map(|tried| {
            let signals = self.fleet.instance(tried.member).signals(now_in_fleet_ms);
            let limited_ms = match signals.limited_ms {
                0 => 0,
                pause_ms => self.jittered_ms(pause_ms),
            };
            let ready_ms = tried.ready_ms.max(now_ms + limited_ms);
            (!signals.tripped).then_some((ready_ms, tried.member))
        });
        let (ready_ms, member) = ready.min()?;
        if ready_ms > now_ms {
            return Some(NextBackend::Wait { until_ms: ready_ms });
        }
        if !self.fleet.retries().try_withdraw() {
            return None;
        }
        let Some(guard) = self.fleet.begin(member, now_in_fleet_ms) else {
            self.fleet.retries().refund();
            return None;
        };
        self.retries += 1;
        Some(self.open(guard, true))
    }

    fn begin_any(&self, order: &[usize], now_ms: u64) -> Option<InFlightGuard> {
        let now_ms = self.fleet_ms(now_ms);
        order.iter().find_map(|member| self.fleet.begin(*member, now_ms))
    }

    fn plan(&self, tried: &[usize], now_ms: u64) -> Result<RoutePlan, Error> {
        let signals: Vec<LoadSnapshot> = self.fleet.signals(self.fleet_ms(now_ms));
        let facts = self.facts(tried)?;
        route::plan(self.fleet.pool(), &signals, &facts, self.fleet.host())
    }

    fn facts<'a>(&'a self, tried: &'a [usize]) -> Result<PlanInput<'a>, Error> {
        let mut facts = PlanInput::of(&self.request, &self.needs, self.fleet.host())?;
        facts.seed = self.seed;
        facts.turn = self.turn;
        facts.tried = tried;
        facts.excluded_models = &self.excluded_models;
        facts.only = self.only.as_deref();
        facts.models = self.models.as_deref();
        Ok(facts)
    }

    /// Adds jitter to a pause, never less than requested.
    fn jittered_ms(&self, pause_ms: u64) -> u64 {
        let most_ms = (pause_ms / 10).min(SPREAD_MAX_MS);
        pause_ms + (most_ms as f64 * route::draw(self.seed, u64::from(self.calls))) as u64
    }

    /// Exponential backoff, between half of the pause and all of it, drawn from the seed.
    fn backoff_ms(&self) -> u64 {
        let retry = self.fleet.settings().retry;
        let doublings = self.retries.min(16);
        let pause_ms = retry
            .backoff_ms
            .saturating_mul(1 << doublings)
            .min(retry.backoff_max_ms);
        let drawn = route::draw(self.seed, u64::from(self.calls));
        (pause_ms as f64 * (0.5 + drawn / 2.0)) as u64
    }
}
