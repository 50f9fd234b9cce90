//! `[media]`: what may be fetched and read, and what becomes of pictures that do not fit.

use std::path::PathBuf;

use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Media {
    pub(crate) fetch: Fetch,
    /// Hosts, for `allowlist`.
    #[serde(default)]
    pub(crate) allow: Vec<String>,
    /// Hosts of one's own network, as `host:port`.
    #[serde(default)]
    pub(crate) inside: Vec<String>,
    /// Folders from which `file` inputs may be read.
    #[serde(default)]
    pub(crate) roots: Vec<PathBuf>,
    /// Where it is absent, the module's tier decides.
    pub(crate) oversize: Option<Oversize>,
    pub(crate) normalise: bool,
    /// Where it is absent, the category decides.
    pub(crate) inline_accept_max: Option<u64>,
    /// Bytes above which media lies in a file and not in memory.
    pub(crate) store_threshold: u64,
    pub(crate) store_max: u64,
    /// Where it is absent, the system's folder for temporary files.
    pub(crate) folder: Option<PathBuf>,
}

/// Which URLs are fetched. Addresses that are not public are never reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fetch {
    Public,
    Allowlist,
    Off,
}

/// What becomes of a picture that is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Oversize {
    Refuse,
    Downscale,
}
