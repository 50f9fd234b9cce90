//! How much of the server each caller gets. A rate over time, places at a time, and fair turns when there
//! are more requests than places.

mod rates;
#[cfg(test)]
mod tests;
mod run_queue;

use std::time::Duration;

use tenancy::Caller;

use self::rates::RateBuckets;
use self::run_queue::RunQueue;
use crate::limits;
use crate::response::ApiError;

pub(crate) use run_queue::{Acquire, RunPermit};

/// What there is to share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Runs at a time.
    pub runs_max: usize,
    /// Requests that wait for a place.
    pub queue_max: usize,
    /// How long one waits before it is sent away.
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

    /// From now on.
    pub(crate) fn resize(&self, capacity: Capacity) {
        self.turns.resize(capacity);
    }

    /// One more request of this caller, if its rate allows it.
    pub(crate) fn check_rate(&self, caller: &Caller) -> Result<(), ApiError> {
        self.rates.pass(caller)
    }

    /// A place for a run; waits for one where there is none.
    pub(crate) async fn acquire(&self, caller: &Caller) -> Result<RunPermit, ApiError> {
        match self.try_acquire(caller)? {
            Acquire::Ready(turn) => Ok(turn),
            Acquire::Queued(wait) => wait.await,
        }
    }

    /// A place for a run, or one in the queue for it.
    pub(crate) fn try_acquire(&self, caller: &Caller) -> Result<Acquire, ApiError> {
        self.turns.line_up(caller)
    }
}
