//! The vocabulary that every other crate speaks: canonical requests and responses, the events of a
//! stream and their fold, media, usage, errors, ids. Plain data; no IO, no clock, no randomness.

pub mod error;
pub mod event;
pub mod id;
pub mod request;
pub mod usage;

pub use error::{Error, ErrorKind};
pub use event::Event;
pub use id::RunId;
pub use request::Request;
pub use usage::Usage;
