//! Media made and verified with real tools, and hostile bytes.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod adapt;
mod facts;
mod hostile;
mod metadata_removal;
mod rejections;
mod samples;
