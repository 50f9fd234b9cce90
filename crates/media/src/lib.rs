//! Media as bytes: type detection, completeness, size, duration and page count, and removal of metadata.
//! Declarations of the sender are verified, never trusted, and every read is bounded.
//!
//! This crate must not depend on modules, runs, networks or stores: bytes in, bytes and facts out.

mod adapt;
mod audio;
mod bounds;
mod checksum;
mod document;
mod error;
mod facts;
mod format;
mod image;
mod inspect;
pub mod limits;
mod orientation;
mod prepare;
mod range_writer;
mod source;
mod video;

pub use adapt::{Action, Adaptation};
pub use bounds::{Bounds, Oversize};
pub use checksum::Declared;
pub use error::{Error, Limit};
pub use facts::Facts;
pub use format::{Format, detect};
pub use inspect::{Inspected, inspect};
pub use prepare::{Prepared, prepare};
pub use source::Source;
