//! The transport of a request, which determines its caller. Over HTTP every request is authenticated,
//! independent of its session; the process at the other end of a pipe is the local user.

use axum::http::request::Parts;
use rmcp::ErrorData;
use rmcp::model::Extensions;

use super::result::fault;
use crate::state::Gateway;
use crate::stream_limit::ClientStreams;

#[derive(Clone, Debug)]
pub(super) enum McpTransport {
    Pipe(ClientStreams),
    Http,
}

/// The configuration of a request over HTTP.
pub(super) fn gateway_of(extensions: &Extensions) -> Option<Gateway> {
    Gateway::of(&extensions.get::<Parts>()?.extensions).ok()
}

impl McpTransport {
    /// The caller of a request. An unauthenticated request over HTTP is an error.
    pub(super) fn client(&self, extensions: &Extensions) -> Result<ClientStreams, ErrorData> {
        match self {
            Self::Pipe(client) => Ok(client.clone()),
            Self::Http => {
                let parts = extensions.get::<Parts>();
                let parts = parts.ok_or_else(|| ErrorData::invalid_request("not authenticated", None))?;
                ClientStreams::of(&parts.extensions).map_err(fault)
            }
        }
    }
}
