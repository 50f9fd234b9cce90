//! Media made and verified with real tools, and hostile bytes.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests read samples and run tools"
)]

mod adapt;
mod facts;
mod hostile;
mod metadata_removal;
mod rejections;
mod samples;
