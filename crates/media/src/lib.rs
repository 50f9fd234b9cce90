//! Media as bytes: what they are, whether they are whole, how large, long and many-paged they are, and
//! how they look without what they need not say about their maker. Nothing here is believed because a
//! sender says so, and nothing is read beyond a limit.
//!
//! This crate must not know modules, runs, networks or stores: bytes come in, bytes and facts go out.

mod adapt;
mod audio;
mod bounds;
mod checksum;
mod document;
mod facts;
mod error;
mod format;
mod image;
mod inspect;
pub mod limits;
mod orientation;
mod range_writer;
mod prepare;
mod source;
mod video;

pub use adapt::{Action, Adaptation};
pub use bounds::{Bounds, Oversize};
pub use checksum::Declared;
pub use facts::Facts;
pub use error::{Error, Limit};
pub use format::{Format, detect};
pub use inspect::{Inspected, inspect};
pub use prepare::{Prepared, prepare};
pub use source::Source;
