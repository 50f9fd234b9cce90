//! The module language: loading Cognitive Modules, checking them, and checking answers against their
//! contract. This crate is pure: modules are passed in as a [`FileMap`], replies as bytes, and there is no
//! clock. It must not depend on a file system, an environment or a network.

pub mod check;
pub mod code;
pub mod compose;
pub mod conformance;
pub mod context;
pub mod diagnostic;
pub mod document;
pub mod envelope;
pub mod expression;
pub mod file_map;
pub mod format;
pub mod golden;
pub mod input;
pub mod limits;
pub mod load;
pub mod lower;
pub mod manifest;
pub mod media;
pub mod migrate;
pub mod module;
pub mod prompt;
pub mod scaffold;
pub mod schema;
mod steps;
pub mod stream;

pub use check::{Strict, check};
pub use code::Code;
pub use diagnostic::{Diagnostic, Severity};
pub use envelope::Envelope;
pub use file_map::FileMap;
pub use format::Format;
pub use load::{Loaded, load};
pub use manifest::Manifest;
pub use module::Module;
