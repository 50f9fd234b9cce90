//! Answers as streams: a model's growing JSON text becomes events, events become numbered chunks, and
//! any sequence of chunks folds back into the envelope. Pure: bytes in, chunks out; the clock and the
//! connection belong to the engine.

mod assemble;
mod check;
mod chunk;
mod append_only_text;
mod digest;
pub mod field;
mod fold;
mod partial_value;
pub mod json;
mod projection;
mod saved_stream;
mod strict_eq;
mod splice;
mod violation;

pub use assemble::{Assembled, Assembler, envelope_of};
pub use check::check_chunk;
pub use chunk::{Checkpoint, Chunk, Progress, Recovery};
pub use append_only_text::{AppendOnlyText, Retracted};
pub use projection::{Projector, ProjectorOptions};
pub use saved_stream::assemble_ndjson;
pub use splice::envelope_text;
pub use violation::Violation;
