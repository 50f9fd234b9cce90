//! The operator's settings for media.

use std::path::PathBuf;

use ::media::Oversize;

use crate::port::Hosts;

/// Whether URLs in inputs are fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchRule {
    Off,
    /// From these hosts only, and never from a non-public address.
    Hosts(Hosts),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaSettings {
    pub fetch: FetchRule,
    /// Folders from which `file` inputs are read; if empty, none are. A relative path is searched in each, in
    /// order.
    pub roots: Vec<PathBuf>,
    /// Files that may be read wherever they are, because the user named them.
    pub files: Vec<PathBuf>,
    /// If absent, the tier decides: exec modules refuse, all others scale down.
    pub oversize: Option<Oversize>,
    /// Whether an image of an unsupported type is converted, where images are adapted at all.
    pub normalise: bool,
    /// Maximum size of inline media; if absent, the limit of its kind.
    pub inline_accept_max: Option<u64>,
    /// Larger media is stored in a file during its run.
    pub store_threshold: u64,
    /// Maximum total size of the files of all runs.
    pub store_bytes_max: u64,
    /// Folder of the files; if absent, the system's folder for temporary files.
    pub folder: Option<PathBuf>,
}

impl Default for MediaSettings {
    fn default() -> Self {
        Self {
            fetch: FetchRule::Hosts(Hosts::Public),
            roots: Vec::new(),
            files: Vec::new(),
            oversize: None,
            normalise: true,
            inline_accept_max: None,
            store_threshold: spill::limits::THRESHOLD_BYTES,
            store_bytes_max: spill::limits::STORE_BYTES_MAX,
            folder: None,
        }
    }
}
