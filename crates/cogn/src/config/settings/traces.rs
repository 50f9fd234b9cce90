//! `[traces]`: where the traces of runs are sent.

use serde::Deserialize;

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Traces {
    /// A collector that takes OTLP over HTTP as JSON; nothing is sent without one.
    pub(crate) endpoint: Option<String>,
    /// The credential that is sent as a bearer token.
    pub(crate) credential: Option<String>,
    pub(crate) service_name: String,
}
