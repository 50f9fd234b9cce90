//! The embedded model: GGUF weights, run in this process on the CPU, as one more back-end behind the port
//! `Upstream`. It knows canonical requests and nothing of modules, files of configuration or the network;
//! where weights come from is somebody else's work.
//!
//! The native runtime is behind the feature `llama`, because it needs a C++ toolchain. Without it the same
//! types are here, and every call is answered with an error that says how to get it.

mod embed;
#[cfg(feature = "llama")]
mod generate;
#[cfg(feature = "llama")]
mod grammar;
pub mod limits;
#[cfg(feature = "llama")]
mod model;
mod options;
#[cfg(feature = "llama")]
mod prompt;
#[cfg(any(feature = "llama", test))]
mod detokenizer;
#[cfg(feature = "llama")]
mod sampling;
#[cfg(any(feature = "llama", test))]
mod schema_narrowing;
#[cfg(test)]
mod tests;
mod upstream;
mod weights;
#[cfg(any(feature = "llama", test))]
mod json_closer;
#[cfg(feature = "llama")]
mod worker;

pub use embed::{Embedder, EmbedderOptions, EncoderFiles, FilesError};
#[cfg(feature = "llama")]
#[doc(hidden)]
pub use model::runtime;
pub use options::Options;
pub use upstream::LocalUpstream;
pub use weights::{WeightsError, check_weights};

/// Whether the native runtime is part of this build.
pub const BUILT_IN: bool = cfg!(feature = "llama");
/// Whether embeddings are.
pub const EMBEDS: bool = cfg!(feature = "embed");
