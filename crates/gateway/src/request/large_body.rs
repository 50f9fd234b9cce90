//! Work on large bodies: parsing and decoding take longer than a worker of the runtime may be occupied, so the
//! worker hands its other tasks to another thread first.

use tokio::runtime::{Handle, RuntimeFlavor};

use crate::limits;

/// Executes work whose duration grows with the body.
pub(crate) fn with_large_body<T>(body_bytes: usize, work: impl FnOnce() -> T) -> T {
    let has_workers =
        || Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if body_bytes <= limits::BODY_INLINE_BYTES || !has_workers() {
        return work();
    }
    tokio::task::block_in_place(work)
}
