//! Module streams: a model's growing JSON text becomes events, events become numbered chunks, and any
//! sequence of chunks folds back into the envelope. Pure: bytes in, chunks out; the engine provides the clock
//! and the connection.

mod append_only_text;
mod assemble;
mod check;
mod chunk;
mod digest;
pub mod field;
mod fold;
pub mod json;
mod partial_value;
mod projection;
mod repetition;
mod saved_stream;
mod strict_eq;
mod violation;

pub use append_only_text::{AppendOnlyText, Retracted};
pub use assemble::{Assembled, Assembler, envelope_of};
pub use check::check_chunk;
pub use chunk::{Checkpoint, Chunk, Progress, Recovery};
pub use projection::{Projector, ProjectorOptions};
pub use repetition::RepetitionDetector;
pub use saved_stream::assemble_ndjson;
pub use violation::Violation;
