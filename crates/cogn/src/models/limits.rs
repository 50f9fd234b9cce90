//! Every bound of fetching weights.

use std::time::Duration;

/// Largest weights file.
pub(crate) const MODEL_BYTES_MAX: u64 = 64 * 1024 * 1024 * 1024;
/// How far a package may be larger than the weights that it carries.
pub(crate) const PACKAGE_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
/// Members of one package.
pub(crate) const MEMBERS_MAX: usize = 10_000;
/// What pip may say.
pub(crate) const REPORT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Redirects of one download; hubs send to a store of files.
pub(crate) const REDIRECTS_MAX: usize = 10;
/// Times a broken download is taken up again.
pub(crate) const RESUMES_MAX: u32 = 5;
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Longest silence in a download.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest name of a model.
pub(crate) const NAME_BYTES_MAX: usize = 100;
