//! Counters of the upstream, and detection of disconnected clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::process::now_us;

#[derive(Default)]
pub(super) struct Stats {
    requests: AtomicU64,
    streams: AtomicU64,
    tokens: AtomicU64,
    cancelled: AtomicU64,
    last_cancel_us: AtomicU64,
}

impl Stats {
    pub(super) fn asked(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn streams(&self) {
        self.streams.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn said(&self) {
        self.tokens.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn show(&self) -> Value {
        let of = |counter: &AtomicU64| counter.load(Ordering::Acquire);
        json!({
            "requests": of(&self.requests),
            "streams": of(&self.streams),
            "tokens": of(&self.tokens),
            "cancelled": of(&self.cancelled),
            "last_cancel_us": of(&self.last_cancel_us),
        })
    }
}

/// Guard of a waiting client. Dropped before the response is complete, it counts a disconnect with its time.
pub(super) struct DisconnectGuard(Option<Arc<Stats>>);

impl DisconnectGuard {
    pub(super) fn new(stats: Arc<Stats>) -> Self {
        Self(Some(stats))
    }

    /// The response is complete; a disconnect no longer counts.
    pub(super) fn over(mut self) {
        self.0 = None;
    }
}

impl Drop for DisconnectGuard {
    fn drop(&mut self) {
        if let Some(stats) = &self.0 {
            // The time is stored first, so that a reader of the count gets the matching time.
            stats.last_cancel_us.store(now_us(), Ordering::Relaxed);
            stats.cancelled.fetch_add(1, Ordering::Release);
        }
    }
}
