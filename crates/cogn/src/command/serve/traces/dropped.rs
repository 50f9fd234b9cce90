//! Counts of runs whose traces were dropped. They are logged at an interval and not for each run, so that a
//! slow or unavailable collector does not flood the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tracing::warn;

/// Minimum time between two log lines.
pub(super) const TELL_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct DroppedTraces {
    /// Runs dropped because the queue was full; counted by the task of the run.
    pub(super) no_room: Arc<Count>,
    lost: DroppedCounts,
    logged_at: Option<Instant>,
}

#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self, runs: u64) {
        self.0.fetch_add(runs, Ordering::Relaxed);
    }
}

/// The counts of one log line, in runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DroppedCounts {
    /// Dropped because the queue was full.
    pub(super) no_room: u64,
    /// Sending to the collector failed.
    pub(super) refused: u64,
    /// The latest error of sending.
    pub(super) error: Option<String>,
    /// Not sent before the shutdown timeout.
    pub(super) left: u64,
}

impl DroppedTraces {
    pub(super) fn refused(&mut self, runs: usize, error: &reqwest::Error) {
        self.lost.refused += count(runs);
        self.lost.error = Some(error.to_string());
    }

    pub(super) fn left(&mut self, runs: usize) {
        self.lost.left += count(runs);
    }

    /// Logs the counts since the last log line, at most once per [`TELL_EVERY`].
    pub(super) fn tell(&mut self) {
        if let Some(lost) = self.due(Instant::now()) {
            lost.log();
        }
    }

    /// Logs the remaining counts without the interval, before the exporter ends.
    pub(super) fn tell_last(&mut self) {
        self.logged_at = None;
        self.tell();
    }

    /// Takes the counts if a log line is due.
    pub(super) fn due(&mut self, now: Instant) -> Option<DroppedCounts> {
        if self.logged_at.is_some_and(|at| now < at + TELL_EVERY) {
            return None;
        }
        self.lost.no_room += self.no_room.0.swap(0, Ordering::Relaxed);
        let lost = std::mem::take(&mut self.lost);
        if lost == DroppedCounts::default() {
            return None;
        }
        self.logged_at = Some(now);
        Some(lost)
    }
}

impl DroppedCounts {
    fn log(&self) {
        let Self {
            no_room,
            refused,
            error,
            left,
        } = self;
        warn!(no_room, refused, left, error, "traces of runs were lost");
    }
}

fn count(runs: usize) -> u64 {
    u64::try_from(runs).unwrap_or(u64::MAX)
}
