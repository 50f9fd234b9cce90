//! The one integration binary of this crate: features, seen from outside.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod documents;
mod envelope_contract;
mod envelope_reply;
mod envelope_rules;
mod envelope_sample;
mod envelope_structure;
mod envelope_wrap;
#[cfg(test)]
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
mod template;
