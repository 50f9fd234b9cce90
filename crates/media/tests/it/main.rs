//! Media made by real tools and judged by real tools, and bytes made to do harm.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod adapt;
mod metadata_removal;
mod facts;
mod hostile;
mod rejections;
mod samples;
