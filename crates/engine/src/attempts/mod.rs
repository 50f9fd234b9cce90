//! The retry loop: decides which attempt comes first, which one replaces a failed attempt, when to hedge, and
//! which attempt is the leader. The only place that retries, fails over or hedges; [`BackendSelector`]
//! selects the back-end, and the caller defines what a valid answer is. No IO; time is an argument.

mod attempt;

use std::sync::Arc;

use ir::error::Phase;
use ir::event::FinishReason;
use ir::{Error, ErrorKind, Event, Request, RunId, TraceContext, Usage};

pub(crate) use self::attempt::Attempt;
use crate::fleet::{BackendSelector, InFlightGuard, NextBackend};
use crate::limits;
use crate::route::{Explanation, Policy};
use crate::run::{AttemptOutcome, AttemptRecord, AttemptRole, Trace};

#[derive(Debug)]
pub(crate) struct Attempts {
    dispatch: BackendSelector,
    /// Explanation of the first route plan, for small fleets.
    explanation: Option<Explanation>,
    /// In progress: one attempt, or several that compete for the first token.
    open: Vec<Attempt>,
    /// The attempt that produced output first; the others are cancelled.
    leader: Option<u32>,
    records: Vec<AttemptRecord>,
    started: u32,
    /// When to select a back-end again.
    waiting_until: Option<u64>,
    /// When to start a hedge.
    hedge_at: Option<u64>,
    /// Error of the last failed attempt.
    last_error: Option<Error>,
}

/// Result of a selection.
#[derive(Debug)]
pub(crate) enum NextAttempt {
    Start(AttemptStart),
    /// Call `advance` again at this time.
    Wait {
        until_ms: u64,
    },
    Exhausted(Error),
}

/// An attempt to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AttemptStart {
    pub(crate) attempt: u32,
    pub(crate) member: usize,
}

/// A failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FailedAttempt {
    /// It was the leader.
    pub(crate) was_leader: bool,
    /// Another attempt may succeed; a request that is invalid for one back-end is invalid for all.
    pub(crate) retryable: bool,
}

/// An attempt with a complete answer.
#[derive(Debug)]
pub(crate) struct CompletedAttempt {
    pub(crate) member: usize,
    pub(crate) model: Option<String>,
    pub(crate) usage: Option<Usage>,
    pub(crate) finish: Option<FinishReason>,
}

impl Attempts {
    pub(crate) fn new(dispatch: BackendSelector) -> Self {
        Self {
            dispatch,
            explanation: None,
            open: Vec::new(),
            leader: None,
            records: Vec::new(),
            started: 0,
            waiting_until: None,
            hedge_at: None,
            last_error: None,
        }
    }

    pub(crate) fn dispatch(&self) -> &BackendSelector {
        &self.dispatch
    }

    pub(crate) fn dispatch_mut(&mut self) -> &mut BackendSelector {
        &mut self.dispatch
    }

    pub(crate) fn request(&self) -> &Arc<Request> {
        self.dispatch.request()
    }

    /// Explains the route plan, before the first attempt. Returns the guard of a mirrored request, if the
    /// request is to be mirrored.
    pub(crate) fn start(&mut self, now_ms: u64) -> Option<InFlightGuard> {
        if self.dispatch.fleet().candidates().len() <= limits::EXPLAINED_MAX {
            self.explanation = self.dispatch.explain(now_ms).ok();
        }
        self.dispatch.mirror(now_ms)
    }

    /// Every finished attempt and the selection that led to it, for a run without module and error.
    pub(crate) fn trace(&self, run: RunId, parent: Option<TraceContext>) -> Trace {
        let mut attempts = self.records.clone();
        attempts.sort_by_key(|record| record.number);
        Trace {
            run,
            module: String::new(),
            operation: self.request().operation(),
            requested_model: self.request().model().map(String::from),
            policy: self.dispatch.policy().map(Policy::name),
            seed: self.dispatch.seed(),
            turn: self.dispatch.turn(),
            order: self.explanation.as_ref().map(|why| why.selected.clone()),
            rejected: self.explanation.as_ref().map(Explanation::reasons),
            parent,
            code: None,
            attempts,
        }
    }

    /// Number of started attempts.
    pub(crate) fn begun(&self) -> u32 {
        self.started
    }

    /// Every finished attempt.
    pub(crate) fn records(&self) -> &[AttemptRecord] {
        &self.records
    }

    /// Attempts of the composition steps that ran before.
    pub(crate) fn import_records(&mut self, records: Vec<AttemptRecord>) {
        self.records.extend(records);
    }

    pub(crate) fn leader(&self) -> Option<u32> {
        self.leader
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn attempt(&self, number: u32) -> Option<&Attempt> {
        self.open.iter().find(|attempt| attempt.number == number)
    }

    /// Whether an open attempt has a complete answer.
    pub(crate) fn has_finished_attempt(&self) -> bool {
        self.open.iter().any(|attempt| attempt.finish.is_some())
    }

    /// The error of the last failed attempt.
    pub(crate) fn take_last_error(&mut self) -> Option<Error> {
        self.last_error.take()
    }

    /// The time of the next `tick` if no other input arrives.
    pub(crate) fn next_wake_ms(&self) -> Option<u64> {
        let timeouts = &self.dispatch.fleet().settings().timeouts;
        let patience = self.open.iter().map(|attempt| attempt.deadline_ms(timeouts));
        let times = [patience.min(), self.waiting_until, self.hedge_at];
        times.into_iter().flatten().min()
    }

    /// The next attempt, or the time to wait for. `again` is the reason of a reask.
    pub(crate) fn advance(&mut self, again: Option<String>, deadline_ms: u64, now_ms: u64) -> NextAttempt {
        match self.dispatch.next(now_ms) {
            NextBackend::Use {
                guard,
                is_retry: returning,
            } => {
                let role = match (&again, &self.last_error) {
                    (Some(_), _) => AttemptRole::Reask,
                    (None, None) => AttemptRole::First,
                    (None, Some(_)) if returning => AttemptRole::Retry,
                    (None, Some(_)) => AttemptRole::Failover,
                };
                let reason = again.or_else(|| self.last_error.as_ref().map(|loss| loss.message.clone()));
                self.arm_hedge(guard.member(), now_ms);
                NextAttempt::Start(self.call(guard, role, reason, now_ms))
            }
            NextBackend::Wait { until_ms } if until_ms < deadline_ms => {
                self.waiting_until = Some(until_ms);
                NextAttempt::Wait { until_ms }
            }
            NextBackend::Wait { until_ms } => {
                let message = "the back-end accepts no call before the deadline";
                let mut error = Error::new(ErrorKind::RateLimited, Phase::BeforeSend, message);
                error.retry_after_ms = Some(until_ms - now_ms);
                NextAttempt::Exhausted(error)
            }
            NextBackend::Exhausted(error) => NextAttempt::Exhausted(*error),
        }
    }

    /// Whether the time of [`NextAttempt::Wait`] is reached; true once.
    pub(crate) fn backoff_elapsed(&mut self, now_ms: u64) -> bool {
        self.waiting_until
            .take_if(|until_ms| now_ms >= *until_ms)
            .is_some()
    }

    /// Calls the same instance again, if it accepts the call.
    pub(crate) fn retry_same(&mut self, member: usize, reason: &str, now_ms: u64) -> Option<AttemptStart> {
        let guard = self.dispatch.reserve_same(member, now_ms)?;
        Some(self.call(guard, AttemptRole::Reask, Some(String::from(reason)), now_ms))
    }

    fn call(
        &mut self,
        guard: InFlightGuard,
        role: AttemptRole,
        reason: Option<String>,
        now_ms: u64,
    ) -> AttemptStart {
        self.started += 1;
        let call = AttemptStart {
            attempt: self.started,
            member: guard.member(),
        };
        // Nearly always one element, never many.
        self.open.reserve_exact(1);
        self.open
            .push(Attempt::new(self.started, guard, role, reason, now_ms));
        call
    }

    /// Records events of an open attempt. Returns whether they contain output or a finish.
    pub(crate) fn on_events(&mut self, number: u32, events: &[Event], now_ms: u64) -> bool {
        let fleet_ms = self.dispatch.fleet_ms(now_ms);
        let Some(attempt) = self.open.iter_mut().find(|attempt| attempt.number == number) else {
            return false;
        };
        attempt.last_event_ms = Some(now_ms);
        attempt.buffered_bytes = 0;
        let mut has_output = false;
        for event in events {
            has_output |= matches!(event, Event::BlockDelta { .. } | Event::Finish { .. });
            attempt.observe(event);
        }
        if has_output && attempt.first_token_ms.is_none() {
            attempt.first_token_ms = Some(now_ms);
            attempt.guard.first_token(fleet_ms);
        }
        has_output
    }

    /// An open attempt has `bytes` of output that is buffered and not decided. It is alive, but does not
    /// become the leader.
    pub(crate) fn on_buffered(&mut self, number: u32, bytes: usize, now_ms: u64) {
        let fleet_ms = self.dispatch.fleet_ms(now_ms);
        let Some(attempt) = self.open.iter_mut().find(|attempt| attempt.number == number) else {
            return;
        };
        attempt.last_event_ms = Some(now_ms);
        attempt.buffered_bytes = bytes;
        if bytes > 0 && attempt.first_token_ms.is_none() {
            attempt.first_token_ms = Some(now_ms);
            attempt.guard.first_token(fleet_ms);
        }
    }

    /// Makes the first attempt with output the leader. Cancels the others and returns their numbers.
    pub(crate) fn promote(&mut self, number: u32, now_ms: u64) -> Vec<u32> {
        if self.leader.is_some() {
            return Vec::new();
        }
        self.leader = Some(number);
        self.hedge_at = None;
        if self.open.len() < 2 {
            return Vec::new();
        }
        let others = self.open.iter().map(|attempt| attempt.number);
        let losers: Vec<u32> = others.filter(|other| *other != number).collect();
        for loser in &losers {
            if let Some(attempt) = self.close(*loser, AttemptOutcome::HedgeLost, None, now_ms) {
                attempt.guard.hedge_lost(self.dispatch.fleet_ms(now_ms));
            }
        }
        losers
    }

    /// The error of a stream that ended here; `None` if it ended after its finish event.
    pub(crate) fn truncation_error(&self, number: u32) -> Option<Error> {
        let attempt = self.attempt(number)?;
        if attempt.finish.is_some() {
            return None;
        }
        let phase = match attempt.last_event_ms {
            None => Phase::BeforeFirstByte,
            Some(_) => Phase::MidStream,
        };
        Some(Error::new(
            ErrorKind::Network,
            phase,
            "back-end closed the stream early",
        ))
    }

    /// The attempts that have timed out. One without an error has finished its output, but not closed the
    /// stream.
    pub(crate) fn expired(&self, now_ms: u64) -> Vec<(u32, Option<Error>)> {
        let timeouts = &self.dispatch.fleet().settings().timeouts;
        let late = |attempt: &&Attempt| now_ms >= attempt.deadline_ms(timeouts);
        let expired = self.open.iter().filter(late).map(|attempt| {
            if attempt.finish.is_some() {
                return (attempt.number, None);
            }
            let (phase, message) = match attempt.last_event_ms {
                None => (Phase::BeforeFirstByte, "no response from the back-end"),
                Some(heard_ms) if now_ms >= heard_ms + timeouts.idle_ms => {
                    (Phase::MidStream, "back-end stream stalled")
                }
                Some(_) => (Phase::MidStream, "attempt exceeded its total timeout"),
            };
            let error = Error::new(ErrorKind::Timeout, phase, message);
            (attempt.number, Some(error))
        });
        expired.collect()
    }

    /// Records a failed attempt.
    pub(crate) fn fail(&mut self, number: u32, error: &Error, now_ms: u64) -> Option<FailedAttempt> {
        let attempt = self.close(number, AttemptOutcome::Failed, Some(error), now_ms)?;
        let led = self.leader == Some(number);
        if led {
            self.leader = None;
        }
        let member = attempt.guard.member();
        attempt.guard.fail(error, self.dispatch.fleet_ms(now_ms));
        let goes_on = self.dispatch.fail(member, error, now_ms);
        self.last_error = Some(error.clone());
        if self.open.is_empty() {
            self.hedge_at = None;
        }
        Some(FailedAttempt {
            was_leader: led,
            retryable: goes_on,
        })
    }

    /// Records a complete answer.
    pub(crate) fn complete(&mut self, number: u32, now_ms: u64) -> Option<CompletedAttempt> {
        let attempt = self.close(number, AttemptOutcome::Succeeded, None, now_ms)?;
        self.leader = None;
        let member = attempt.guard.member();
        attempt.guard.succeed();
        Some(CompletedAttempt {
            member,
            model: attempt.model,
            usage: attempt.usage,
            finish: attempt.finish,
        })
    }

    /// Restarts the selection for another answer; the last error is no longer the reason of the next attempt.
    pub(crate) fn restart(&mut self, request: Option<Arc<Request>>, only: Option<String>) {
        self.last_error = None;
        self.dispatch.restart(request, only);
    }

    /// Sets the time of a hedge, if the policy hedges.
    fn arm_hedge(&mut self, member: usize, now_ms: u64) {
        let Some(&Policy::Hedged { delay_ms, .. }) = self.dispatch.policy() else {
            return;
        };
        self.hedge_at = Some(now_ms + self.dispatch.hedge_delay_ms(member, delay_ms));
    }

    /// Starts a hedge, if its time is reached and the budget permits it.
    pub(crate) fn hedge(&mut self, now_ms: u64) -> Option<AttemptStart> {
        self.hedge_at.take_if(|at_ms| now_ms >= *at_ms)?;
        let Some(&Policy::Hedged { k, .. }) = self.dispatch.policy() else {
            return None;
        };
        if self.leader.is_some() || self.open.is_empty() || self.open.len() >= k as usize {
            return None;
        }
        let open: Vec<usize> = self.open.iter().map(|attempt| attempt.guard.member()).collect();
        let guard = self.dispatch.hedge(&open, now_ms)?;
        self.arm_hedge(guard.member(), now_ms);
        let reason = Some(String::from("no first token yet"));
        Some(self.call(guard, AttemptRole::Hedge, reason, now_ms))
    }

    /// Cancels all attempts and returns their numbers.
    pub(crate) fn cancel_all(&mut self, outcome: AttemptOutcome, now_ms: u64) -> Vec<u32> {
        self.waiting_until = None;
        self.hedge_at = None;
        let numbers: Vec<u32> = self.open.iter().map(|attempt| attempt.number).collect();
        for number in &numbers {
            self.close(*number, outcome, None, now_ms);
        }
        numbers
    }

    /// Removes an attempt and appends its record; the only place that does.
    fn close(
        &mut self,
        number: u32,
        outcome: AttemptOutcome,
        error: Option<&Error>,
        now_ms: u64,
    ) -> Option<Attempt> {
        let at = self.open.iter().position(|attempt| attempt.number == number)?;
        let mut attempt = self.open.remove(at);
        let candidate = &self.dispatch.fleet().candidates()[attempt.guard.member()];
        let request = self.dispatch.request();
        attempt.apply_price(candidate.price, request.operation());
        let record = attempt.record(candidate, request, outcome, error, now_ms);
        self.records.reserve_exact(1);
        self.records.push(record);
        Some(attempt)
    }
}
