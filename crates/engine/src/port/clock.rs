//! The wall clock and the random source. Durations inside a run are measured by the runtime's monotonic
//! timer; this clock only dates rows and makes ids.

use std::fmt;

pub trait Clock: Send + Sync + fmt::Debug {
    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> u64;

    /// Unpredictable bits, used for run ids.
    fn random(&self) -> u128;
}
