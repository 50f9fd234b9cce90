//! Places for runs, and the wait for one. Who is next is decided by `tenancy::limit::Fair`; here is the
//! waiting around it. A place is held until its run has ended, whoever still listens.

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
    /// How long a place is held, on the average of late.
    average_hold: Duration,
}

/// What a request gets at once.
pub(crate) enum Acquire {
    Ready(RunPermit),
    /// Its place in the queue, held for as long as this is.
    Queued(BoxFuture<'static, Result<RunPermit, ApiError>>),
}

/// A place. Dropping it gives it to whoever is next.
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

    /// Whoever waits and now has a place comes in at once.
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
        let (ticket, patience) = {
            let mut state = self.lock();
            let patience = state.capacity.queue_wait;
            // Those that wait count too: nobody asks again when their turn has come.
            if let Some(allowed) = caller.concurrency
                && state.fair.demand_of(client) >= allowed as usize
            {
                return Err(concurrency_exceeded(allowed, state.average_hold));
            }
            match state.fair.enter(client, sender) {
                Enqueued::Admitted(_) => return Ok(Acquire::Ready(self.new_permit(client))),
                Enqueued::Rejected(_) => return Err(state.overloaded()),
                // The one that had to go hears of it when its sender is dropped.
                Enqueued::Queued(ticket, _) => (ticket, patience),
            }
        };
        let waiting = QueueGuard {
            turns: self.clone(),
            client: String::from(client),
            ticket,
        };
        let wait = async move {
            if let Ok(Ok(turn)) = tokio::time::timeout(patience, receiver).await {
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

    /// The place goes to the next. If that one has just gone, the place comes back here by being dropped.
    fn release(self: &Arc<Self>, client: &str) {
        let next = self.lock().fair.leave(client);
        if let Some((client, sender)) = next {
            drop(sender.send(self.new_permit(&client)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while it holds the lock, so a poisoned state is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// An honest guess: as many as wait and one more, at the pace at which places become free.
    fn overloaded(&self) -> ApiError {
        let ahead = u32::try_from(self.fair.waiting() + 1).unwrap_or(u32::MAX);
        let places = u32::try_from(self.capacity.runs_max.max(1)).unwrap_or(u32::MAX);
        let pause = (self.average_hold * ahead / places).clamp(limits::RETRY_MIN, limits::RETRY_MAX);
        let message = format!(
            "{} runs are in progress and {} wait",
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

/// Somebody who waits, and may stop waiting at any moment. One whose turn has come, or who had to make
/// room, is not in the queue any more.
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
