//! Throwing away old runs: in the background, a little at a time, never one that still matters.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::limits;
use crate::port::{Archive, Clock, PruneResult, PruneRequest};

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// How long a finished run is kept.
    pub runs_ms: u64,
    /// How much is kept at most; beyond it the oldest go.
    pub bytes_max: u64,
    /// How long it is known what was used.
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

    /// Sweeps now and then until it is told to stop. Batches are small and pauses lie between them, so
    /// that runs in progress hardly notice.
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
                    warn!(%error, "old runs cannot be thrown away");
                    limits::SWEEP_EVERY
                }
            };
            if !pause(wait).await {
                return;
            }
        }
    }

    /// One batch.
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
            info!(runs = pruned.runs, "threw away old runs");
        }
        Ok(pruned)
    }
}
