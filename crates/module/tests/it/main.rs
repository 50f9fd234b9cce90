//! The integration test binary of this crate; tests use the public API only.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests read fixtures, and the clock for hangs"
)]

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod envelope_contract;
#[cfg(test)]
mod envelope_reply;
#[cfg(test)]
mod envelope_rules;
#[cfg(test)]
mod envelope_sample;
#[cfg(test)]
mod envelope_snapshot;
#[cfg(test)]
mod envelope_structure;
#[cfg(test)]
mod envelope_wrap;
#[cfg(test)]
mod load;
#[cfg(test)]
mod load_fuzz;
#[cfg(test)]
mod migrate;
mod migrate_property;
#[cfg(test)]
mod number_digits;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod prompt_fields;
#[cfg(test)]
mod property;
#[cfg(test)]
mod schema_worst_case;
#[cfg(test)]
mod schemas;
#[cfg(test)]
mod stream_assemble;
#[cfg(test)]
mod stream_chunk;
#[cfg(test)]
mod stream_data_text;
#[cfg(test)]
mod stream_json;
#[cfg(test)]
mod stream_projection;
#[cfg(test)]
mod template;
