//! Settings of a server. All of them can change while it runs, unless noted otherwise.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::limits;
use crate::server::Network;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Allowed origins; `*` is any.
    pub cors_origins: Vec<String>,
    /// Allowed host names. Empty allows any, which is safe only where callers must authenticate: a page can
    /// resolve its own name to a loopback address.
    pub hosts: Vec<String>,
    /// Most open streams per client.
    pub streams_per_client_max: usize,
    /// Most open connections; further ones wait. Fixed at start.
    pub connections_max: usize,
    /// Most open connections of one address; by default half of all. Fixed at start.
    pub connections_per_address_max: Option<usize>,
    /// Addresses of proxies, which have many clients and so no limit of their own. Fixed at start.
    pub trusted_proxies: Vec<Network>,
    /// Timeout for request headers and for idle connections. Fixed at start.
    pub header_read: Duration,
    /// Memory for request bodies that are being read, parsed or used by a call. Fixed at start.
    pub body_memory_bytes_max: usize,
    /// Timeout for a request body.
    pub body_read: Duration,
    /// Time without write progress after which a connection is closed. Fixed at start.
    pub write_stall: Duration,
    /// Time for runs to end after the server was asked to stop.
    pub drain: Duration,
    /// Whether a canonical request may request the raw response of the provider.
    pub raw_answers: bool,
    /// Whether a canonical request may patch the body that is sent to a back-end.
    pub request_patches: bool,
    /// Aliases of models for clients of vendor APIs.
    pub aliases: BTreeMap<String, Alias>,
    /// Whether a person must confirm a call of an MCP host to a module with side effects.
    pub mcp_confirm: bool,
}

/// Target of an alias.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// A model, or a module as `module:NAME`.
    pub model: String,
    /// The only back-end that may be called.
    pub backend: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cors_origins: Vec::new(),
            hosts: Vec::new(),
            streams_per_client_max: limits::STREAMS_PER_CLIENT_MAX,
            connections_max: limits::CONNECTIONS_MAX,
            connections_per_address_max: None,
            trusted_proxies: Vec::new(),
            header_read: limits::HEADER_READ,
            body_memory_bytes_max: limits::BODY_MEMORY_BYTES_MAX,
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
