//! How much of it: a rate for each caller, and fair turns between callers when there is not enough for
//! all. Pure; whoever waits, waits elsewhere.

mod fair;
mod rate;
#[cfg(test)]
mod tests;

pub use fair::{Enqueued, FairQueue, QueueTicket};
pub use rate::{Bucket, Rate};
