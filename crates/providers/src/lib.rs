//! Back-ends that answer canonical requests, one file or folder each. Adding one touches nothing else.
//! This crate must not know what a module is, nor how answers are stored or served.

pub mod anthropic;
pub mod http;
pub mod limits;
pub mod openai;
pub mod scripted;

pub use anthropic::anthropic;
pub use http::{Client, Http, HttpOptions, Timeouts};
pub use openai::openai;
pub use scripted::Scripted;
