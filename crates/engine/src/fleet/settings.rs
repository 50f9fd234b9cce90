//! How a fleet deals with back-ends that fail or dawdle. Every number has a reason beside it; all can be set.

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Settings {
    pub timeouts: Timeouts,
    pub retry: Retry,
    pub breaker: Breaker,
    pub hedge: Hedge,
}

/// Each limit on its own, so that a slow first word and a silent stream are told apart. Connecting is part
/// of the time to the first byte here; who connects has a limit of its own for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    pub first_byte_ms: u64,
    /// Between two events.
    pub idle_ms: u64,
    /// One attempt, however lively.
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

/// Going back to an instance that has failed. Going on to another one is not a retry in this sense: each is
/// asked once, and the breaker keeps a dead one from being asked at all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    /// Attempts of one run in all, other back-ends included; never more than the crate's own limit.
    pub attempts_max: u32,
    /// How many of them may go back to an instance that has failed this run.
    pub same_max: u32,
    /// The first pause; it doubles, and the seed draws a part of it.
    pub backoff_ms: u64,
    pub backoff_max_ms: u64,
    /// How much of the traffic may be retries.
    pub share: f64,
    /// Retries that are there from the start, so that a quiet fleet can retry too.
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

/// When an instance is left alone, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Breaker {
    /// Failures in a row that open it.
    pub failures: u32,
    /// Share of failures among the latest calls that opens it, however they are mixed.
    pub failure_share: f64,
    /// How long the first time; each failed trial doubles it.
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

/// What a second call for the same answer may cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hedge {
    /// Extra calls as a share of all calls.
    pub share: f64,
    /// Extra calls that are there from the start.
    pub reserve: f64,
    /// An instance that is known waits until it is slower than this share of its own answers.
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
