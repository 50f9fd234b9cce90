//! Everything in memory: for tests, and for commands whose runs nobody will come back to.

mod journal;

pub use journal::MemoryJournal;
