//! The module's contract: `schema.json` compiled as a whole, so that `$ref: #/$defs/...` inside a
//! section works, and consulted at a pointer. Nothing is ever fetched: a reference that leaves the
//! document is refused before compilation.

mod contract;
mod variant;

pub use contract::{Contract, SchemaError, Section};
