//! Pruning of old runs: in the background and in small batches. Unfinished runs, runs that wait for a review
//! and runs that hold an idempotency key are never pruned.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::limits;
use crate::port::{Archive, Clock, PruneRequest, PruneResult};

/// Limits of retention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// Retention of finished runs.
    pub runs_ms: u64,
    /// Maximum size; above it the oldest runs are pruned.
    pub bytes_max: u64,
    /// Retention of usage records.
    pub usage_ms: u64,
}

impl Default for RetentionPolicy {
    fn default() -> Self {
        Self {
            runs_ms: limits::KEEP_RUNS_MS,
            bytes_max: limits::KEEP_BYTES_MAX,
            usage_ms: limits::KEEP_USAGE_MS,
        }
    }
}

#[derive(Debug)]
pub struct Janitor {
    archive: Arc<dyn Archive>,
    clock: Arc<dyn Clock>,
    keep: RetentionPolicy,
}

impl Janitor {
    pub fn new(archive: Arc<dyn Archive>, clock: Arc<dyn Clock>, keep: RetentionPolicy) -> Self {
        Self { archive, clock, keep }
    }

    /// Prunes periodically until cancelled. Batches are small and separated by pauses, so that the effect on
    /// runs in progress is small.
    pub async fn run(self, stop: CancellationToken) {
        let pause = async |duration: Duration| {
            stop.run_until_cancelled(tokio::time::sleep(duration))
                .await
                .is_some()
        };
        loop {
            let wait = match self.sweep().await {
                Ok(pruned) if pruned.more => limits::PRUNE_PAUSE,
                Ok(_) => limits::SWEEP_EVERY,
                Err(error) => {
                    warn!(%error, "pruning of old runs failed");
                    limits::SWEEP_EVERY
                }
            };
            if !pause(wait).await {
                return;
            }
        }
    }

    /// Prunes one batch.
    pub async fn sweep(&self) -> Result<PruneResult, crate::port::JournalError> {
        let now_ms = self.clock.now_ms();
        let retention = PruneRequest {
            before_ms: now_ms.saturating_sub(self.keep.runs_ms),
            bytes_max: self.keep.bytes_max,
            idempotency_since_ms: now_ms.saturating_sub(limits::IDEMPOTENCY_WINDOW_MS),
            once_short_since_ms: now_ms.saturating_sub(limits::IDEMPOTENCY_WINDOW_MIN_MS),
            usage_before_ms: now_ms.saturating_sub(self.keep.usage_ms),
            batch: limits::SWEEP_RUNS_MAX,
        };
        let pruned = self.archive.prune(&retention).await?;
        if pruned.runs > 0 {
            info!(runs = pruned.runs, "pruned old runs");
        }
        Ok(pruned)
    }
}
