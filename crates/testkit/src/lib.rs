//! What tests of several crates share: suites that every adapter of a port must pass, and clocks,
//! upstreams and modules made for tests.

#![expect(clippy::unwrap_used, reason = "a suite fails by panicking")]

pub mod clock;
pub mod conformance;
pub mod embedding_model;
#[cfg(feature = "servers")]
pub mod fault;
#[cfg(feature = "servers")]
pub mod http;
#[cfg(feature = "servers")]
pub mod llama_server;
pub mod manual_upstream;
pub mod speech;
pub mod tools;
pub mod language_model;
