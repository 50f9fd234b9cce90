//! Embeddings in this process: a small BERT encoder whose token vectors are averaged and normalised, as
//! intended for sentence encoders of the MiniLM family. Reads files in the format of model hubs: weights as
//! safetensors, tokenizer and configuration as JSON. Must not know where they come from.
//!
//! The computation is behind the feature `embed`. Without it the same types exist, and every call fails
//! with an error that names the missing feature.

#[cfg(feature = "embed")]
mod config;
#[cfg(feature = "embed")]
mod encoder;
mod files;
#[cfg(feature = "embed")]
mod model;
mod upstream;
#[cfg(feature = "embed")]
mod worker;

pub use files::{EncoderFiles, FilesError};
pub use upstream::{Embedder, EmbedderOptions};
