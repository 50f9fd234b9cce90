//! Mirrored requests: copies for comparison. They delay no run, their answers are discarded, and they end
//! with the server at the latest. The fleet limits their number.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use ir::event::Delta;
use ir::{Event, RunId};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::info;

use crate::fleet::{Fleet, InFlightGuard};
use crate::limits;
use crate::port::EventStream;

#[derive(Clone, Debug, Default)]
pub(crate) struct MirrorTasks {
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl MirrorTasks {
    pub(crate) fn begin(&self, run: RunId, guard: InFlightGuard, fleet: Arc<Fleet>, events: EventStream) {
        let limit = Duration::from_millis(fleet.settings().timeouts.total_ms);
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                _ = tokio::time::timeout(limit, run_mirror(run, guard, fleet, events)) => {}
            }
        });
    }

    /// Cancels all copies in flight.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Reads the answer to a copy to its end; only latency, size and usage are logged.
async fn run_mirror(run: RunId, mut guard: InFlightGuard, fleet: Arc<Fleet>, mut events: EventStream) {
    let began = Instant::now();
    let mut bytes = 0;
    let mut usage = None;
    let elapsed_ms = || u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let began_ms = guard.began_ms();
    let mut failure = None;
    while let Some(event) = events.next().await {
        match event {
            Event::BlockDelta { delta, .. } => {
                guard.first_token(began_ms + elapsed_ms());
                bytes += match delta {
                    Delta::Text { text } => text.len(),
                    _ => 0,
                };
                if bytes > limits::REPLY_BYTES_MAX {
                    break;
                }
            }
            Event::Usage { usage: reported } => usage = Some(reported),
            Event::Error { error } => {
                failure = Some(error);
                break;
            }
            _ => {}
        }
    }
    let backend = fleet.candidates()[guard.member()].name.clone();
    let latency_ms = elapsed_ms();
    match failure {
        Some(error) => {
            info!(%run, backend, latency_ms, kind = ?error.kind, "mirrored request failed");
            guard.fail(&error, began_ms + latency_ms);
        }
        None => {
            info!(%run, backend, latency_ms, bytes, ?usage, "mirrored request completed");
            guard.succeed();
        }
    }
}
