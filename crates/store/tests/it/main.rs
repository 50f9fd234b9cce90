//! The journals of this crate against the suite of their port.

mod journal;
