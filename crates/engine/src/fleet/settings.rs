//! How a fleet handles failing and slow back-ends. All values can be configured.
//! configured.

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Settings {
    pub timeouts: Timeouts,
    pub retry: Retry,
    pub breaker: Breaker,
    pub hedge: Hedge,
}

/// Separate limits, so that a slow first byte and a stalled stream are different errors. Connecting is part
/// of the time to the first byte here; the HTTP client has a separate connect timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    pub first_byte_ms: u64,
    /// Between two events.
    pub idle_ms: u64,
    /// One attempt in total.
    pub total_ms: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            first_byte_ms: 60_000,
            idle_ms: 60_000,
            total_ms: 300_000,
        }
    }
}

/// Retries on an instance that has failed in this run. A failover to another instance is not limited by this:
/// each is tried once, and the breaker excludes those that are down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    /// Attempts of one run in total, other back-ends included; never more than the crate's own limit.
    pub attempts_max: u32,
    /// How many of them may be on an instance that has failed in this run.
    pub same_max: u32,
    /// The first pause; it doubles, with jitter from the seed.
    pub backoff_ms: u64,
    pub backoff_max_ms: u64,
    /// Retries as a share of traffic.
    pub share: f64,
    /// Initial budget, so that a fleet with little traffic can retry too.
    pub reserve: f64,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts_max: 6,
            same_max: 2,
            backoff_ms: 250,
            backoff_max_ms: 8_000,
            share: 0.2,
            reserve: 10.0,
        }
    }
}

/// When the breaker opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Breaker {
    /// Consecutive failures that open it.
    pub failures: u32,
    /// Failure ratio of the latest calls that opens it, in any order.
    pub failure_share: f64,
    /// Duration of the first open state; each failed probe doubles it.
    pub open_ms: u64,
    pub open_max_ms: u64,
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            failures: 5,
            failure_share: 0.5,
            open_ms: 10_000,
            open_max_ms: 120_000,
        }
    }
}

/// The budget of hedges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hedge {
    /// Hedges as a share of all calls.
    pub share: f64,
    /// Initial budget.
    pub reserve: f64,
    /// An instance with known latency is hedged only after this quantile of its own answers.
    pub quantile: f64,
}

impl Default for Hedge {
    fn default() -> Self {
        Self {
            share: 0.018,
            reserve: 5.0,
            quantile: 0.982,
        }
    }
}
