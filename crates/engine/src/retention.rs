//! Pruning of old runs: in the background and in small batches. Unfinished runs, runs that wait for a review
//! and runs that hold an idempotency key are never pruned.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
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
    /// A wall time, and when it was read on the monotonic clock.
    reference: Mutex<(u64, Instant)>,
    /// Whether the reference was compared with the newest run.
    is_compared: AtomicBool,
}

impl Janitor {
    pub fn new(archive: Arc<dyn Archive>, clock: Arc<dyn Clock>, keep: RetentionPolicy) -> Self {
        let reference = Mutex::new((clock.now_ms(), Instant::now()));
        Self {
            archive,
            clock,
            keep,
            reference,
            is_compared: AtomicBool::new(false),
        }
    }

    /// The wall time as far as it is confirmed: by the newest run of an earlier server, and by the time that has
    /// passed since. A clock that is far ahead would make every run look old, whether it was wrong at the start or
    /// set later. A clock that was set back only delays pruning.
    fn confirmed_ms(&self, now_ms: u64) -> u64 {
        let mut reference = self.reference();
        let passed_ms = u64::try_from(reference.1.elapsed().as_millis()).unwrap_or(u64::MAX);
        let expected_ms = reference.0.saturating_add(passed_ms);
        if now_ms < expected_ms {
            *reference = (now_ms, Instant::now());
        }
        match now_ms.saturating_sub(expected_ms) <= limits::CLOCK_JUMP_MAX_MS {
            true => now_ms,
            false => expected_ms,
        }
    }

    /// Compares the clock with the newest run that the archive had when this server started.
    async fn compare_clock(&self) -> Result<(), crate::port::JournalError> {
        if self.is_compared.load(Ordering::Relaxed) {
            return Ok(());
        }
        let newest_ms = self.archive.newest_run_ms().await?;
        self.is_compared.store(true, Ordering::Relaxed);
        let mut reference = self.reference();
        let Some(newest_ms) = newest_ms else {
            return Ok(());
        };
        if reference.0.saturating_sub(newest_ms) > limits::CLOCK_JUMP_MAX_MS {
            reference.0 = newest_ms;
        } else if newest_ms.saturating_sub(reference.0) > limits::CLOCK_JUMP_MAX_MS {
            warn!(
                now_ms = reference.0,
                newest_ms, "the system clock is far behind the newest run"
            );
        }
        Ok(())
    }

    fn reference(&self) -> MutexGuard<'_, (u64, Instant)> {
        // No code panics while it holds the lock, so a poisoned value is consistent.
        self.reference.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.compare_clock().await?;
        let wall_ms = self.clock.now_ms();
        let now_ms = self.confirmed_ms(wall_ms);
        if now_ms < wall_ms {
            warn!(
                wall_ms,
                confirmed_ms = now_ms,
                "the system clock is far ahead of the newest run and the time since; runs are pruned by confirmed time, \
                 and by the clock after the next restart"
            );
        }
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};

    use async_trait::async_trait;
    use ir::RunId;
    use tenancy::Tenant;
    use tokio::time::Duration;

    use super::{Janitor, RetentionPolicy};
    use crate::port::{
        Archive, AttemptUsage, Clock, JournalError, PruneRequest, PruneResult, ReviewDecision, RunFilter,
        RunSummary, UsageFilter, UsageRow,
    };

    const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

    #[derive(Debug)]
    struct WallClock(AtomicU64);

    impl Clock for WallClock {
        fn now_ms(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }

        fn random(&self) -> u128 {
            0
        }
    }

    /// Records what would be pruned.
    #[derive(Debug, Default)]
    struct Requests {
        pruned: Mutex<Vec<PruneRequest>>,
        newest_ms: Option<u64>,
    }

    #[async_trait]
    impl Archive for Requests {
        async fn list(&self, _: &Tenant, _: &RunFilter) -> Result<Vec<RunSummary>, JournalError> {
            Ok(Vec::new())
        }

        async fn review(&self, _: &Tenant, _: RunId, _: &ReviewDecision) -> Result<(), JournalError> {
            Ok(())
        }

        async fn attempt_usage(&self, _: &Tenant, _: RunId) -> Result<Vec<AttemptUsage>, JournalError> {
            Ok(Vec::new())
        }

        async fn usage(&self, _: Option<&Tenant>, _: &UsageFilter) -> Result<Vec<UsageRow>, JournalError> {
            Ok(Vec::new())
        }

        async fn newest_run_ms(&self) -> Result<Option<u64>, JournalError> {
            Ok(self.newest_ms)
        }

        async fn prune(&self, retention: &PruneRequest) -> Result<PruneResult, JournalError> {
            self.pruned.lock().unwrap().push(*retention);
            Ok(PruneResult::default())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn clock_that_was_set_far_ahead_makes_no_run_old() {
        let began = 20_000 * DAY_MS;
        let clock = Arc::new(WallClock(AtomicU64::new(began)));
        let archive = Arc::new(Requests::default());
        let keep = RetentionPolicy {
            runs_ms: 30 * DAY_MS,
            ..RetentionPolicy::default()
        };
        let janitor = Janitor::new(archive.clone(), clock.clone(), keep);
        let sweep = async |now_ms: u64| {
            clock.0.store(now_ms, Ordering::Relaxed);
            janitor.sweep().await.unwrap();
            archive.pruned.lock().unwrap().pop().expect("a request").before_ms
        };
        tokio::time::advance(Duration::from_millis(DAY_MS)).await;
        let day = began + DAY_MS;
        assert_eq!(sweep(day).await, day - 30 * DAY_MS);
        for ahead in [8 * DAY_MS, 365 * DAY_MS, u64::MAX - day] {
            assert_eq!(sweep(day + ahead).await, day - 30 * DAY_MS, "{ahead}");
        }
        // Right again, or set back.
        assert_eq!(sweep(day).await, day - 30 * DAY_MS);
        assert_eq!(sweep(began).await, began - 30 * DAY_MS);
        let ahead = sweep(began + 20 * DAY_MS).await;
        assert_eq!(ahead, began - 30 * DAY_MS, "ahead of the new reference");
    }

    /// The first prune request of a server that starts at `now_ms`, and one of a day later.
    async fn before_ms(newest_ms: Option<u64>, now_ms: u64) -> [u64; 2] {
        let clock = Arc::new(WallClock(AtomicU64::new(now_ms)));
        let archive = Arc::new(Requests {
            newest_ms,
            ..Requests::default()
        });
        let keep = RetentionPolicy {
            runs_ms: 30 * DAY_MS,
            ..RetentionPolicy::default()
        };
        let janitor = Janitor::new(archive.clone(), clock.clone(), keep);
        let mut requests = [0; 2];
        for (day, request) in (0..).zip(&mut requests) {
            clock
                .0
                .store(now_ms.saturating_add(day * DAY_MS), Ordering::Relaxed);
            janitor.sweep().await.unwrap();
            *request = archive.pruned.lock().unwrap().pop().expect("a request").before_ms;
            tokio::time::advance(Duration::from_millis(DAY_MS)).await;
        }
        requests
    }

    #[tokio::test(start_paused = true)]
    async fn clock_that_is_wrong_at_the_start_makes_no_run_old() {
        let newest = 20_000 * DAY_MS;
        let by_newest = [newest - 30 * DAY_MS, newest - 29 * DAY_MS];
        for ahead in [8 * DAY_MS, 365 * DAY_MS, 10_000 * DAY_MS] {
            assert_eq!(
                before_ms(Some(newest), newest + ahead).await,
                by_newest,
                "{ahead}"
            );
        }
        // A server that was stopped for some days, one whose clock is behind, and one without runs.
        let now = newest + 5 * DAY_MS;
        let by_clock = [now - 30 * DAY_MS, now - 29 * DAY_MS];
        assert_eq!(before_ms(Some(newest), now).await, by_clock);
        assert_eq!(before_ms(None, now).await, by_clock);
        assert_eq!(
            before_ms(Some(newest), 40 * DAY_MS).await,
            [10 * DAY_MS, 11 * DAY_MS]
        );
        assert_eq!(before_ms(Some(newest), 0).await, [0, 0]);
    }
}
