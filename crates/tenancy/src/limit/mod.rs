//! A rate limit per caller, and fair queueing between callers. Pure; the waiting itself is done by the
//! gateway.

mod fair;
mod rate;
#[cfg(test)]
mod tests;

pub use fair::{Enqueued, FairQueue, QueueTicket};
pub use rate::{Bucket, Rate};
