//! `[network]`: the way to back-ends.

use std::path::PathBuf;

use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Network {
    /// A URL, or `off`.
    pub(crate) proxy: Option<String>,
    /// The credential that holds `user:password` for the proxy.
    pub(crate) proxy_credential: Option<String>,
    pub(crate) no_proxy: Vec<String>,
    /// Certificates in PEM form that are trusted beside those of the system.
    pub(crate) ca_files: Vec<PathBuf>,
}
