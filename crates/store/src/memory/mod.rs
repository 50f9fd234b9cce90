//! Everything in memory: for tests, and for commands whose runs nobody will come back to.

mod archive;
mod journal;
mod keys;

pub use journal::MemoryJournal;
pub use keys::MemoryKeys;
