//! One suite for each port. An adapter's test calls it with a way to make a fresh, empty instance.

pub mod archive;
pub mod journal;
pub mod keys;
