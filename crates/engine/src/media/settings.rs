//! What the person who runs an engine allows about media.

use std::path::PathBuf;

use ::media::Oversize;

use crate::limits;
use crate::port::Hosts;

/// Whether addresses in inputs are fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchRule {
    Off,
    /// From these hosts, and never from an address that is not public.
    Hosts(Hosts),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaSettings {
    pub fetch: FetchRule,
    /// Folders from which `file` inputs are read; without any, none is. A relative path is looked for in
    /// each, in order.
    pub roots: Vec<PathBuf>,
    /// Files that may be read wherever they are, because a person named them.
    pub files: Vec<PathBuf>,
    /// Where it is absent, the tier decides: what is executed is refused, anything else is scaled down.
    pub oversize: Option<Oversize>,
    /// Whether a picture of a type that the module does not take is converted, where pictures are made to
    /// fit at all.
    pub normalise: bool,
    /// Most bytes of media inside a request; the category's limit where it is absent.
    pub inline_accept_max: Option<u64>,
    /// Media of more bytes than this lies in a file while its run lasts.
    pub store_threshold: u64,
    /// Most bytes of all runs that lie in files.
    pub store_bytes_max: u64,
    /// Where the files are; the system's folder for temporary files where it is absent.
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
            store_threshold: limits::MEDIA_STORE_THRESHOLD,
            store_bytes_max: limits::MEDIA_STORE_BYTES_MAX,
            folder: None,
        }
    }
}
