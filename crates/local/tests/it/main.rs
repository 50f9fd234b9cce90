//! The embedded model with real weights. They are fetched once and kept in the user's cache folder.

#[cfg(all(test, feature = "llama"))]
mod ask;
#[cfg(all(test, feature = "llama"))]
mod contract;
#[cfg(all(test, feature = "llama"))]
mod generation;
#[cfg(all(test, feature = "llama"))]
mod load;
#[cfg(all(test, feature = "llama"))]
mod queue;
#[cfg(all(test, not(feature = "llama")))]
mod without;
