//! Through which door a request came, and so who sent it. Over HTTP every request shows its own
//! credentials, whatever session it belongs to; the process on the other end of a pipe is its own user.

use axum::http::request::Parts;
use rmcp::ErrorData;
use rmcp::model::Extensions;

use super::result::fault;
use crate::stream_limit::ClientStreams;

#[derive(Clone, Debug)]
pub(super) enum McpTransport {
    Pipe(ClientStreams),
    Http,
}

impl McpTransport {
    /// Whoever sent a request with these extensions. A request over HTTP that nobody was identified for has
    /// no sender, and gets no answer.
    pub(super) fn client(&self, extensions: &Extensions) -> Result<ClientStreams, ErrorData> {
        match self {
            Self::Pipe(client) => Ok(client.clone()),
            Self::Http => {
                let parts = extensions.get::<Parts>();
                let parts = parts.ok_or_else(|| ErrorData::invalid_request("nobody was identified", None))?;
                ClientStreams::of(&parts.extensions).map_err(fault)
            }
        }
    }
}
