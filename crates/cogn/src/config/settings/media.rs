//! `[media]`: which media may be fetched and read, and how oversized images are handled.

use std::path::PathBuf;

use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Media {
    pub(crate) fetch: Fetch,
    /// Allowed hosts, for `allowlist`.
    #[serde(default)]
    pub(crate) allow: Vec<String>,
    /// Private hosts that URLs in inputs may name, as `host:port`.
    #[serde(default)]
    pub(crate) private_hosts: Vec<String>,
    /// Folders from which `file` inputs may be read.
    #[serde(default)]
    pub(crate) roots: Vec<PathBuf>,
    /// Default: depends on the tier of the module.
    pub(crate) oversize: Option<Oversize>,
    pub(crate) normalise: bool,
    /// Default: depends on the media category.
    pub(crate) inline_accept_max: Option<u64>,
    /// Size in bytes above which media is stored in a file and not in memory.
    pub(crate) store_threshold: u64,
    pub(crate) store_max: u64,
    /// Default: the temporary folder of the system.
    pub(crate) folder: Option<PathBuf>,
}

/// Which URLs are fetched. Requests to addresses that are not public are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fetch {
    Public,
    Allowlist,
    Off,
}

/// The action for an image that is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Oversize {
    Refuse,
    Downscale,
}
