//! The embedded model: GGUF weights that run in this process on the CPU, as a back-end behind the port
//! `Upstream`. Must not know modules, configuration files, the network, or where weights come from.
//!
//! The native runtime is behind the feature `llama`, because it needs a C++ toolchain. Without it the same
//! types exist, and every call fails with an error that names the missing feature.

#[cfg(any(feature = "llama", test))]
mod detokenizer;
mod embed;
#[cfg(feature = "llama")]
mod generate;
#[cfg(feature = "llama")]
mod grammar;
#[cfg(any(feature = "llama", test))]
mod json_closer;
pub mod limits;
#[cfg(feature = "llama")]
mod model;
mod options;
#[cfg(feature = "llama")]
mod processor;
#[cfg(feature = "llama")]
mod prompt;
#[cfg(feature = "llama")]
mod prompt_cache;
mod requantise;
#[cfg(feature = "llama")]
mod sampling;
#[cfg(any(feature = "llama", test))]
mod schema_narrowing;
#[cfg(test)]
mod tests;
mod upstream;
mod weights;
#[cfg(feature = "llama")]
mod worker;

pub use embed::{Embedder, EmbedderOptions, EncoderFiles, FilesError};
#[cfg(feature = "llama")]
#[doc(hidden)]
pub use model::runtime;
pub use options::Options;
pub use requantise::requantise;
pub use upstream::LocalUpstream;
pub use weights::{WeightsError, check_weights};

/// Whether the native runtime is part of this build.
pub const BUILT_IN: bool = cfg!(feature = "llama");
/// Whether embeddings are part of this build.
pub const EMBEDS: bool = cfg!(feature = "embed");
