//! Embeddings in this process: a small BERT encoder whose token vectors are averaged and brought to length one,
//! as sentence encoders of the MiniLM family are meant to be used. Reads the files that model hubs hold:
//! weights as safetensors, a tokenizer and a configuration as JSON. Knows nothing of where they come from.
//!
//! The arithmetic is behind the feature `embed`. Without it the same types are here, and every call is answered
//! with an error that says how to get it.

#[cfg(feature = "embed")]
mod encoder;
mod files;
#[cfg(feature = "embed")]
mod model;
#[cfg(feature = "embed")]
mod config;
mod upstream;
#[cfg(feature = "embed")]
mod worker;

pub use files::{EncoderFiles, FilesError};
pub use upstream::{Embedder, EmbedderOptions};
