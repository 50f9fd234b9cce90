//! What an HTTP status of a back-end means for the attempt.

use ir::ErrorKind;

pub(super) fn kind(status: u16) -> ErrorKind {
    match status {
        401 | 403 => ErrorKind::Auth,
        402 => ErrorKind::Quota,
        408 | 504 => ErrorKind::Timeout,
        413 => ErrorKind::ContextWindow,
        429 => ErrorKind::RateLimited,
        404 | 501 => ErrorKind::Unsupported,
        400..=499 => ErrorKind::InvalidRequest,
        _ => ErrorKind::Upstream,
    }
}
