//! HTTP server, MCP server and WebSocket in front of the engine. It parses and negotiates requests, makes one
//! call to the engine and frames the result; it renders no chunk and does not decide anything about a run.
//! This crate must not know back-ends or storage.

#[cfg(test)]
mod allocated_bytes;
mod auth;
mod call;
mod endpoint;
mod extract;
mod framing;
mod headers;
mod idempotency;
mod inference;
mod limit;
pub mod limits;
mod mcp;
mod metrics;
mod middleware;
mod negotiate;
mod origin;
mod request;
mod response;
mod resume;
mod route;
mod run_stream;
mod server;
mod settings;
mod state;
mod stream_limit;
mod streaming;
mod trace;
mod ws;

pub use auth::{Algorithm, Auth, TokenVerifier};
pub use limit::Capacity;
pub use mcp::serve_stdio as speak_mcp;
pub use route::{openapi_document, router};
pub use server::{Network, Tls, serve};
pub use settings::{Alias, Settings};
pub use state::Gateway;
