//! Answers as streams: a model's growing JSON text becomes events, events become numbered chunks, and
//! any sequence of chunks folds back into the envelope. Pure: bytes in, chunks out; the clock and the
//! connection belong to the engine.

mod chunk;

pub use chunk::{Checkpoint, Chunk, Progress, Recovery};
