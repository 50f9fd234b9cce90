//! Limits per caller: request rate, concurrent runs, a fair queue when there are more requests than permits,
//! and the memory of request bodies.

mod body_budget;
mod rates;
mod run_queue;
#[cfg(test)]
mod tests;

use std::time::Duration;

use tenancy::Caller;

use self::rates::RateBuckets;
use self::run_queue::RunQueue;
use crate::limits;
use crate::response::ApiError;

pub(crate) use body_budget::{BodyBudget, BodyPermit};
pub(crate) use run_queue::{Acquire, RunPermit};

/// Limits shared by all callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Most concurrent runs.
    pub runs_max: usize,
    /// Most queued requests.
    pub queue_max: usize,
    /// Timeout in the queue.
    pub queue_wait: Duration,
}

impl Default for Capacity {
    fn default() -> Self {
        Self {
            runs_max: limits::RUNS_MAX,
            queue_max: limits::QUEUE_MAX,
            queue_wait: limits::QUEUE_WAIT,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Limiter {
    rates: RateBuckets,
    turns: std::sync::Arc<RunQueue>,
}

impl Limiter {
    pub(crate) fn new(capacity: Capacity) -> Self {
        Self {
            rates: RateBuckets::default(),
            turns: std::sync::Arc::new(RunQueue::new(capacity)),
        }
    }

    /// Applies immediately.
    pub(crate) fn resize(&self, capacity: Capacity) {
        self.turns.resize(capacity);
    }

    /// Counts a request, if the rate of the caller allows it.
    pub(crate) fn check_rate(&self, caller: &Caller) -> Result<(), ApiError> {
        self.rates.pass(caller)
    }

    /// Acquires a run permit, waiting if necessary.
    pub(crate) async fn acquire(&self, caller: &Caller) -> Result<RunPermit, ApiError> {
        match self.try_acquire(caller)? {
            Acquire::Ready(turn) => Ok(turn),
            Acquire::Queued(wait) => wait.await,
        }
    }

    /// A run permit or a place in the queue.
    pub(crate) fn try_acquire(&self, caller: &Caller) -> Result<Acquire, ApiError> {
        self.turns.line_up(caller)
    }
}
