//! Every bound of this crate in one place.

use std::time::Duration;

/// Largest request body that is read.
pub const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Silence on a stream before a sign of life, where the module does not say.
pub const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long runs may go on after the server was told to stop.
pub const DRAIN: Duration = Duration::from_secs(10);
/// How long connections may take to close after that.
pub const CLOSE: Duration = Duration::from_secs(2);
