//! Everything in memory: for tests, and for commands whose runs are never resumed.

mod archive;
mod journal;
mod keys;

pub use journal::MemoryJournal;
pub use keys::MemoryKeys;
