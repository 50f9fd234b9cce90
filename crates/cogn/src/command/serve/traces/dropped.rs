//! Runs whose traces were lost: counted, and told in the log once in a while, not once for each. A collector that is
//! too slow or gone must not fill the log as well.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tracing::warn;

/// The least time between two lines about it.
pub(super) const TELL_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct DroppedTraces {
    /// Counted by those whose runs end, whoever they are.
    pub(super) no_room: Arc<Count>,
    lost: DroppedCounts,
    told: Option<Instant>,
}

#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self, runs: u64) {
        self.0.fetch_add(runs, Ordering::Relaxed);
    }
}

/// What one line tells, in runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DroppedCounts {
    /// They came faster than they could be sent.
    pub(super) no_room: u64,
    /// The collector did not take them.
    pub(super) refused: u64,
    /// The latest reason for that.
    pub(super) error: Option<String>,
    /// The server stopped before they were sent.
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

    /// Tells the log what was lost since it was last told, unless that was a moment ago.
    pub(super) fn tell(&mut self) {
        if let Some(lost) = self.due(Instant::now()) {
            lost.log();
        }
    }

    /// The same for the last time: nothing comes behind it.
    pub(super) fn tell_last(&mut self) {
        self.told = None;
        self.tell();
    }

    /// What is to be told now.
    pub(super) fn due(&mut self, now: Instant) -> Option<DroppedCounts> {
        if self.told.is_some_and(|told| now < told + TELL_EVERY) {
            return None;
        }
        self.lost.no_room += self.no_room.0.swap(0, Ordering::Relaxed);
        let lost = std::mem::take(&mut self.lost);
        if lost == DroppedCounts::default() {
            return None;
        }
        self.told = Some(now);
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
