//! Shared test support: conformance suites for the adapters of a port, and clocks, upstreams and modules for
//! tests.

#![expect(clippy::unwrap_used, reason = "a suite fails by panicking")]

pub mod clock;
pub mod conformance;
pub mod embedding_model;
#[cfg(feature = "servers")]
pub mod fault;
#[cfg(feature = "servers")]
pub mod http;
pub mod language_model;
#[cfg(feature = "servers")]
pub mod llama_server;
pub mod manual_upstream;
pub mod speech;
pub mod tools;
