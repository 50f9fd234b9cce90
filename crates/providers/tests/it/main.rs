//! Back-ends against servers that say exactly what a test wants.

mod http;
mod server;
