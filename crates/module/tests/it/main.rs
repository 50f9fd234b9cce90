//! The one integration binary of this crate: features, seen from outside.

#[cfg(test)]
mod documents;
mod envelope_structure;
mod load;
mod migrate;
#[cfg(test)]
mod stream_assemble;
#[cfg(test)]
mod stream_chunk;
#[cfg(test)]
mod stream_json;
#[cfg(test)]
mod stream_projection;
