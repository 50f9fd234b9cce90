//! Modules as tools, resources and prompts of MCP hosts. Protocol and transports are those of the official
//! SDK. One server serves both transports; authentication, authorization and limits are those of the HTTP
//! API.

mod builtin;
mod call;
mod completion;
mod confirm;
mod http;
mod list_changed;
mod module_page;
mod names;
mod progress;
mod prompt;
mod resource;
mod result;
mod server;
mod sessions;
mod stdio;
#[cfg(test)]
mod tests;
mod tool;
mod transport;
mod view;

pub(crate) use http::{McpHttpService, PATH, SESSION, described};
pub use stdio::serve_stdio;
