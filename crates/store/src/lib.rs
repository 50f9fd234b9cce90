//! Where things are kept. One folder per engine, each an adapter for ports that other crates own; each
//! passes the same suites. This crate must not know providers or the HTTP edge.

pub mod limits;
pub mod memory;
pub mod sqlite;
