//! The embedded model with real weights. They are fetched once and kept in the user's cache folder.

#[cfg(feature = "llama")]
mod ask;
#[cfg(feature = "llama")]
mod contract;
#[cfg(feature = "llama")]
mod generation;
#[cfg(feature = "llama")]
mod load;
#[cfg(feature = "llama")]
mod queue;
#[cfg(not(feature = "llama"))]
mod without;
