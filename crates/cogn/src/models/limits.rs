//! Limits of downloads of weights.

use std::time::Duration;

/// Size limit of a weights file.
pub(crate) const MODEL_BYTES_MAX: u64 = 64 * 1024 * 1024 * 1024;
/// Size limit of a package.
pub(crate) const PACKAGE_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
/// Limit of members of one package.
pub(crate) const MEMBERS_MAX: usize = 10_000;
/// Size limit of pip's report.
pub(crate) const REPORT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Limit of redirects of one download; hubs redirect to file servers.
pub(crate) const REDIRECTS_MAX: usize = 10;
/// Limit of consecutive retries without progress.
pub(crate) const RESUMES_MAX: u32 = 5;
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Timeout without data.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Length limit of a model name.
pub(crate) const NAME_BYTES_MAX: usize = 100;
