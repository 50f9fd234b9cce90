//! Integration tests of the binary: arguments in; stdout, stderr and exit code out.

#[cfg(test)]
mod backend_warnings;
#[cfg(test)]
mod backends;
#[cfg(test)]
mod bad_requests;
#[cfg(test)]
mod batch;
#[cfg(test)]
mod body_memory;
#[cfg(test)]
mod browser;
#[cfg(test)]
mod canonical;
#[cfg(test)]
mod canonical_aliases;
#[cfg(test)]
mod canonical_patches;
#[cfg(test)]
mod canonical_raw;
#[cfg(test)]
mod canonical_stream;
#[cfg(test)]
mod chaos;
#[cfg(test)]
mod chat_urls;
#[cfg(test)]
mod check;
#[cfg(test)]
mod clients;
#[cfg(test)]
mod compose;
#[cfg(test)]
mod config;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod conformance_server;
#[cfg(test)]
mod convert;
#[cfg(test)]
mod convert_media;
#[cfg(test)]
mod disconnect_latency;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod embedded;
#[cfg(test)]
mod example_prompts;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod explain;
#[cfg(test)]
mod failover;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod gate;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod info;
#[cfg(test)]
mod json_output_schemas;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod list;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod mcp_clients;
#[cfg(test)]
mod media;
#[cfg(test)]
mod media_large;
#[cfg(test)]
mod migrate;
#[cfg(test)]
mod models;
#[cfg(test)]
mod module_schema_limits;
#[cfg(test)]
mod new;
#[cfg(test)]
mod noisy_neighbour;
#[cfg(test)]
mod openai_large_media;
#[cfg(test)]
mod openai_unary;
#[cfg(test)]
mod openai_unary_disconnect;
#[cfg(test)]
mod programs;
#[cfg(feature = "local")]
#[cfg(test)]
mod real_clients;
#[cfg(test)]
mod recording;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod route;
#[cfg(test)]
mod run;
#[cfg(test)]
mod run_flags;
#[cfg(test)]
mod run_history;
#[cfg(test)]
mod schema_suite;
#[cfg(test)]
mod schemathesis;
#[cfg(test)]
mod serve;
#[cfg(test)]
mod serve_connections;
#[cfg(test)]
mod serve_discovery;
#[cfg(test)]
mod serve_hostile;
#[cfg(test)]
mod serve_media_recovery;
#[cfg(test)]
mod serve_recipes;
#[cfg(test)]
mod serve_reload;
#[cfg(test)]
mod serve_timeouts;
#[cfg(test)]
mod serve_trace;
#[cfg(test)]
mod serve_websocket;
#[cfg(test)]
mod shutdown;
#[cfg(test)]
mod speech;
#[cfg(test)]
mod test_tools;
#[cfg(test)]
mod tokens;
#[cfg(test)]
mod tool_emulation;
#[cfg(test)]
mod trust;
#[cfg(test)]
mod usage_relayed;
#[cfg(test)]
mod validate;
#[cfg(test)]
mod vendor_chat;
#[cfg(test)]
mod vendor_choices;
#[cfg(test)]
mod vendor_client;
#[cfg(test)]
mod vendor_cost;
#[cfg(test)]
mod vendor_disconnect;
#[cfg(test)]
mod vendor_errors;
#[cfg(test)]
mod vendor_midstream_failover;
#[cfg(test)]
mod vendor_module;
#[cfg(test)]
mod vendor_module_media;
#[cfg(test)]
mod vendor_module_stream;
#[cfg(test)]
mod vendor_resume;
#[cfg(test)]
mod vendor_schema;
#[cfg(test)]
mod workspace;
