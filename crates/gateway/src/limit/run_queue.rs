//! Permits for runs and the wait for one. `tenancy::limit::FairQueue` decides the order; the asynchronous
//! waiting is here. A permit is held until its run has ended, with or without readers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use futures::FutureExt;
use futures::future::BoxFuture;
use module::Code;
use module::envelope::ErrorBody;
use tenancy::Caller;
use tenancy::limit::{Enqueued, FairQueue, QueueTicket};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Capacity;
use crate::limits;
use crate::response::ApiError;

#[derive(Debug)]
pub(super) struct RunQueue {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    capacity: Capacity,
    fair: FairQueue<oneshot::Sender<RunPermit>>,
    /// Moving average of the time a permit is held.
    average_hold: Duration,
}

/// Immediate result of a request.
pub(crate) enum Acquire {
    Ready(RunPermit),
    /// Queued; dropping the future leaves the queue.
    Queued(BoxFuture<'static, Result<RunPermit, ApiError>>),
}

/// A run permit. On drop it passes to the next request.
#[derive(Debug)]
pub(crate) struct RunPermit {
    turns: Arc<RunQueue>,
    client: String,
    since: Instant,
}

impl RunQueue {
    pub(super) fn new(capacity: Capacity) -> Self {
        Self {
            state: Mutex::new(State {
                capacity,
                fair: FairQueue::new(capacity.runs_max, capacity.queue_max),
                average_hold: limits::INITIAL_RUN_ESTIMATE,
            }),
        }
    }

    /// Waiting requests within the new capacity are admitted at once.
    pub(super) fn resize(self: &Arc<Self>, capacity: Capacity) {
        let mut state = self.lock();
        state.capacity = capacity;
        state.fair.resize(capacity.runs_max, capacity.queue_max);
        let called: Vec<_> = std::iter::from_fn(|| state.fair.pop_next()).collect();
        drop(state);
        for (client, sender) in called {
            drop(sender.send(self.new_permit(&client)));
        }
    }

    pub(super) fn line_up(self: &Arc<Self>, caller: &Caller) -> Result<Acquire, ApiError> {
        let (sender, receiver) = oneshot::channel();
        let client = caller.client.as_str();
        let (ticket, queue_wait) = {
            let mut state = self.lock();
            let queue_wait = state.capacity.queue_wait;
            // Waiting requests count too: the limit is not checked again when they are admitted.
            if let Some(allowed) = caller.concurrency
                && state.fair.demand_of(client) >= allowed as usize
            {
                return Err(concurrency_exceeded(allowed, state.average_hold));
            }
            match state.fair.enter(client, sender) {
                Enqueued::Admitted(_) => return Ok(Acquire::Ready(self.new_permit(client))),
                Enqueued::Rejected(_) => return Err(state.overloaded()),
                // An evicted request is notified by the drop of its sender.
                Enqueued::Queued(ticket, _) => (ticket, queue_wait),
            }
        };
        let waiting = QueueGuard {
            turns: self.clone(),
            client: String::from(client),
            ticket,
        };
        let wait = async move {
            if let Ok(Ok(turn)) = tokio::time::timeout(queue_wait, receiver).await {
                return Ok(turn);
            }
            let turns = waiting.turns.clone();
            drop(waiting);
            Err(turns.lock().overloaded())
        };
        Ok(Acquire::Queued(wait.boxed()))
    }

    fn new_permit(self: &Arc<Self>, client: &str) -> RunPermit {
        RunPermit {
            turns: self.clone(),
            client: String::from(client),
            since: Instant::now(),
        }
    }

    /// Passes the permit to the next request. If that one was cancelled meanwhile, the dropped permit gets
    /// here again.
    fn release(self: &Arc<Self>, client: &str) {
        let next = self.lock().fair.leave(client);
        if let Some((client, sender)) = next {
            drop(sender.send(self.new_permit(&client)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while it holds the lock, so a poisoned state is consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Estimates `retry_after_ms`: queued requests plus one, at the rate at which permits are released.
    fn overloaded(&self) -> ApiError {
        let ahead = u32::try_from(self.fair.waiting() + 1).unwrap_or(u32::MAX);
        let places = u32::try_from(self.capacity.runs_max.max(1)).unwrap_or(u32::MAX);
        let pause = (self.average_hold * ahead / places).clamp(limits::RETRY_MIN, limits::RETRY_MAX);
        let message = format!(
            "{} runs are in progress and {} are queued",
            self.fair.running(),
            self.fair.waiting()
        );
        let body = ErrorBody::new(Code::E4002, message)
            .detail("limit", "runs")
            .detail("retry_after_ms", millis(pause));
        ApiError::with_status(body, StatusCode::SERVICE_UNAVAILABLE)
    }
}

impl Drop for RunPermit {
    fn drop(&mut self) {
        {
            let mut state = self.turns.lock();
            state.average_hold = (state.average_hold * 7 + self.since.elapsed()) / 8;
        }
        self.turns.release(&self.client);
    }
}

/// Removes a waiting request from the queue on drop. Admitted and evicted requests are not in the queue any
/// more.
struct QueueGuard {
    turns: Arc<RunQueue>,
    client: String,
    ticket: QueueTicket,
}

impl Drop for QueueGuard {
    fn drop(&mut self) {
        let withdrawn = self.turns.lock().fair.withdraw(&self.client, self.ticket);
        drop(withdrawn);
    }
}

fn concurrency_exceeded(allowed: u32, held: Duration) -> ApiError {
    let pause = held.clamp(limits::RETRY_MIN, limits::RETRY_MAX);
    let body = ErrorBody::new(
        Code::E4002,
        format!("these credentials allow {allowed} runs at a time"),
    )
    .detail("limit", "concurrency")
    .detail("allowed", allowed)
    .detail("retry_after_ms", millis(pause));
    ApiError::new(body)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
