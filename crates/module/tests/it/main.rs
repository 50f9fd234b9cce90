//! The one integration binary of this crate: features, seen from outside.

#[cfg(test)]
mod documents;
mod envelope_structure;
mod load;
mod migrate;
mod stream_assemble;
mod stream_chunk;
