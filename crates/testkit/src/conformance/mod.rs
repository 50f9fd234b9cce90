//! One conformance suite per port. An adapter's test calls it with a function that creates an empty instance.

pub mod archive;
pub mod journal;
pub mod keys;
