//! Back-ends that answer canonical requests, one file or folder each. Adding one touches nothing else.
//! This crate must not know what a module is, nor how answers are stored or served.

pub mod scripted;

pub use scripted::Scripted;
