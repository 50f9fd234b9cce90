//! What the person who runs a server may turn. All of it can change while the server runs, except where
//! it says otherwise.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::limits;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Pages from these origins may call; `*` is any.
    pub cors_origins: Vec<String>,
    /// Names under which the server may be called. Empty is any, which is safe only where callers must
    /// show a key: a page elsewhere can make its own name lead to a loopback address.
    pub hosts: Vec<String>,
    /// Streams that one client may have open.
    pub streams_per_client_max: usize,
    /// Connections at a time; more wait. Fixed at the start.
    pub connections_max: usize,
    /// For the headers of a request, and between two requests of a connection. Fixed at the start.
    pub header_read: Duration,
    /// For the body of a request.
    pub body_read: Duration,
    /// How long a reader may take nothing. Fixed at the start.
    pub write_stall: Duration,
    /// How long runs may go on after the server was told to stop.
    pub drain: Duration,
    /// Whether a canonical request may ask for what the provider said, word for word.
    pub raw_answers: bool,
    /// Whether a canonical request may change the body that is sent to a back-end.
    pub request_patches: bool,
    /// Names that vendors' clients may ask for in place of a model's own.
    pub aliases: BTreeMap<String, Alias>,
    /// Whether a person is asked before an MCP host runs a module that may act on the world.
    pub mcp_confirm: bool,
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// A model, or a module as `module:NAME`.
    pub model: String,
    /// The only back-end that may answer.
    pub backend: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cors_origins: Vec::new(),
            hosts: Vec::new(),
            streams_per_client_max: limits::STREAMS_PER_CLIENT_MAX,
            connections_max: limits::CONNECTIONS_MAX,
            header_read: limits::HEADER_READ,
            body_read: limits::BODY_READ,
            write_stall: limits::WRITE_STALL,
            drain: limits::DRAIN,
            raw_answers: false,
            request_patches: false,
            aliases: BTreeMap::new(),
            mcp_confirm: true,
        }
    }
}
