//! Modules as tools of any MCP host. The protocol and its transports are the official SDK's; here stands
//! what a module is to a host: a tool, a resource, a prompt. One server speaks over both transports; who
//! calls, what they may and how much of it is decided where it is decided for HTTP.

mod builtin;
mod call;
mod list_changed;
mod completion;
mod confirm;
mod transport;
mod http;
mod names;
mod module_page;
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
mod view;

pub(crate) use http::{McpHttpService, PATH, SESSION, described};
pub use stdio::serve_stdio;
