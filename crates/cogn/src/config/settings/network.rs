//! `[network]`: proxy and certificates for requests to back-ends.

use std::path::PathBuf;

use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Network {
    /// A URL, or `off`.
    pub(crate) proxy: Option<String>,
    /// The credential with `user:password` for the proxy.
    pub(crate) proxy_credential: Option<String>,
    pub(crate) no_proxy: Vec<String>,
    /// PEM certificates that are trusted in addition to those of the system.
    pub(crate) ca_files: Vec<PathBuf>,
}
