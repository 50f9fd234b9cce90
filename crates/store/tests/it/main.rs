//! The journals of this crate against the suite of their port.

mod archive;
mod journal;
mod keys;
