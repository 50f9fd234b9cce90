//! A manual clock for tests, with deterministic random numbers.

use std::sync::atomic::{AtomicU64, Ordering};

use engine::port::Clock;

#[derive(Debug, Default)]
pub struct ManualClock {
    now_ms: AtomicU64,
    next_random: AtomicU64,
}

impl ManualClock {
    pub fn advance(&self, ms: u64) {
        self.now_ms.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    fn random(&self) -> u128 {
        u128::from(self.next_random.fetch_add(1, Ordering::Relaxed))
    }
}
