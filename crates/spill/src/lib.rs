//! Temporary storage of media while a run or request uses it, and its transport: from the network into the
//! store piece by piece, and from the store into a body that is being sent. At most one chunk of an item is
//! in memory.

mod anonymous_file;
mod body;
mod chunked_writer;
pub mod limits;
mod media_placeholders;
mod run_files;
mod spill_store;
mod spill_writer;

pub use body::{BodySegment, SegmentedBody};
pub use chunked_writer::ChunkedWriter;
pub use media_placeholders::{MediaPlaceholders, random_secret};
pub use run_files::RunFiles;
pub use spill_store::{RunSpill, SpillStore};
pub use spill_writer::SpillWriter;
