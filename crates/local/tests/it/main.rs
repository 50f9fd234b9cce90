//! The embedded model with real weights, which are downloaded once and cached in the user's cache folder.

#[cfg(test)]
#[cfg(feature = "llama")]
mod contract;
#[cfg(test)]
#[cfg(feature = "embed")]
mod embedding;
#[cfg(test)]
#[cfg(feature = "llama")]
mod generation;
#[cfg(test)]
#[cfg(feature = "llama")]
mod harness;
#[cfg(test)]
#[cfg(feature = "llama")]
mod load;
#[cfg(test)]
#[cfg(not(feature = "llama"))]
mod no_runtime;
#[cfg(test)]
#[cfg(feature = "llama")]
mod prompt_reuse;
#[cfg(test)]
#[cfg(feature = "llama")]
mod queue;
