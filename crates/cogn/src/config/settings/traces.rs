//! `[traces]`: export of traces of runs.

use serde::Deserialize;

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Traces {
    /// URL of a collector for OTLP over HTTP with JSON. Default: no export.
    pub(crate) endpoint: Option<String>,
    /// The credential that is sent as a bearer token.
    pub(crate) credential: Option<String>,
    pub(crate) service_name: String,
}
