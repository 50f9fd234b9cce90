//! Health of one instance. Values that every plan reads are atomics; values that only a finished call changes
//! are behind a lock.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ir::error::{Fault, Phase};
use ir::{Error, ErrorKind};

use super::breaker::{Breaker, BreakerDecision};
use super::histogram::Histogram;
use super::settings::Settings;
use crate::route::LoadSnapshot;

/// Weight of one answer in the smoothed time to the first token.
const SMOOTHING: f64 = 0.2;
/// Pause after a rate limit without a retry-after.
const PAUSE_MS: u64 = 1_000;

#[derive(Debug)]
pub(super) struct InstanceHealth {
    inflight: AtomicU32,
    /// The bits of an `f64`; NaN before the first answer.
    latency_bits: AtomicU64,
    /// A copy of the breaker's `ready_ms`.
    ready_ms: AtomicU64,
    limited_until_ms: AtomicU64,
    /// Until then, other back-ends and keys come first: its key was refused.
    refused_until_ms: AtomicU64,
    inner: Mutex<InstanceInner>,
}

#[derive(Debug)]
struct InstanceInner {
    breaker: Breaker,
    first_tokens: Histogram,
}

impl InstanceHealth {
    pub(super) fn new() -> Self {
        Self {
            inflight: AtomicU32::new(0),
            latency_bits: AtomicU64::new(f64::NAN.to_bits()),
            ready_ms: AtomicU64::new(0),
            limited_until_ms: AtomicU64::new(0),
            refused_until_ms: AtomicU64::new(0),
            inner: Mutex::new(InstanceInner {
                breaker: Breaker::new(),
                first_tokens: Histogram::default(),
            }),
        }
    }

    pub(super) fn signals(&self, now_ms: u64) -> LoadSnapshot {
        let latency_ms = f64::from_bits(self.latency_bits.load(Ordering::Relaxed));
        let limited_until_ms = self.limited_until_ms.load(Ordering::Relaxed);
        LoadSnapshot {
            inflight: self.inflight.load(Ordering::Relaxed),
            latency_ms: (!latency_ms.is_nan()).then_some(latency_ms),
            tripped: self.ready_ms.load(Ordering::Relaxed) > now_ms,
            limited_ms: limited_until_ms.saturating_sub(now_ms),
            key_refused: self.refused_until_ms.load(Ordering::Relaxed) > now_ms,
        }
    }

    /// Starts a call. `None` if the breaker or the in-flight limit rejects it.
    pub(super) fn begin(&self, inflight_max: Option<u32>, now_ms: u64) -> Option<BreakerDecision> {
        let room = |count: u32| inflight_max.is_none_or(|most| count < most).then_some(count + 1);
        let counted = self
            .inflight
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, room);
        counted.ok()?;
        let mut inner = self.inner();
        let admission = inner.breaker.admit(now_ms);
        self.publish_ready(&inner);
        if admission == BreakerDecision::Reject {
            self.inflight.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(admission)
    }

    pub(super) fn end(&self) {
        self.inflight.fetch_sub(1, Ordering::Relaxed);
    }

    /// Records the time to the first token.
    pub(super) fn first_token(&self, after_ms: f64) {
        self.inner().first_tokens.record(after_ms);
        self.smooth(after_ms);
    }

    /// Records a censored time to the first token: the attempt was abandoned after `ms`. Without it, an
    /// instance would look faster the more often it is abandoned.
    pub(super) fn record_censored_ttft(&self, ms: f64) {
        self.inner().first_tokens.record(ms);
        let known = f64::from_bits(self.latency_bits.load(Ordering::Relaxed));
        if known.is_nan() || known < ms {
            self.smooth(ms);
        }
    }

    pub(super) fn succeed(&self) {
        self.refused_until_ms.store(0, Ordering::Relaxed);
        let mut inner = self.inner();
        inner.breaker.succeed();
        self.publish_ready(&inner);
    }

    /// Records a failure. Only a fault of the back-end counts for the breaker: a caller can cause every other
    /// one as often as it likes, and must not change the calls of others.
    pub(super) fn fail(&self, error: &Error, now_ms: u64, settings: &Settings) {
        if error.kind == ErrorKind::RateLimited {
            let until_ms = now_ms + error.retry_after_ms.unwrap_or(PAUSE_MS);
            self.limited_until_ms.fetch_max(until_ms, Ordering::Relaxed);
        }
        // The key will not be valid a second later either.
        if matches!(error.kind, ErrorKind::Auth | ErrorKind::Quota) {
            let until_ms = now_ms + settings.breaker.open_max_ms;
            self.refused_until_ms.store(until_ms, Ordering::Relaxed);
        }
        let mut inner = self.inner();
        match error.kind.fault() {
            Fault::BackEnd => inner.breaker.fail(now_ms, &settings.breaker),
            // The back-end answered, so it is up.
            Fault::Request | Fault::Credential if error.phase != Phase::BeforeSend => {
                inner.breaker.answer();
            }
            Fault::Request | Fault::Credential | Fault::None => inner.breaker.release_probe(),
        }
        self.publish_ready(&inner);
    }

    /// Releases a probe without a result.
    pub(super) fn release_probe(&self) {
        let mut inner = self.inner();
        inner.breaker.release_probe();
        self.publish_ready(&inner);
    }

    pub(super) fn first_token_quantile(&self, share: f64) -> Option<f64> {
        self.inner().first_tokens.quantile(share)
    }

    fn smooth(&self, ms: f64) {
        let blend = |bits: u64| {
            let known = f64::from_bits(bits);
            let next = if known.is_nan() {
                ms
            } else {
                known + SMOOTHING * (ms - known)
            };
            Some(next.to_bits())
        };
        // The closure always returns a value, so the update cannot fail.
        let updated = self
            .latency_bits
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, blend);
        debug_assert!(updated.is_ok());
    }

    fn publish_ready(&self, inner: &InstanceInner) {
        self.ready_ms.store(inner.breaker.ready_ms(), Ordering::Relaxed);
    }

    fn inner(&self) -> MutexGuard<'_, InstanceInner> {
        // No code panics while it holds the lock.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
