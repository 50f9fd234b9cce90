//! The edge: modules as resources, as tools of MCP hosts, and runs as streams. It parses and negotiates, makes one call into
//! the engine, and frames what comes back; it renders no chunk and decides nothing about a run. This
//! crate must not know back-ends or storage.

mod auth;
mod call;
mod middleware;
mod inference;
mod extract;
mod framing;
mod headers;
mod limit;
pub mod limits;
mod mcp;
mod metrics;
mod negotiate;
mod idempotency;
mod endpoint;
mod origin;
mod response;
mod request;
mod route;
mod stream_limit;
mod server;
mod settings;
mod state;
mod streaming;
mod trace;
mod ws;

pub use auth::{Algorithm, Auth, TokenVerifier};
pub use limit::Capacity;
pub use mcp::serve_stdio as speak_mcp;
pub use route::{openapi_document, router};
pub use server::{Tls, serve};
pub use settings::{Alias, Settings};
pub use state::Gateway;
