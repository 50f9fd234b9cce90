//! The configuration: layers of TOML and environment, merged into one tree that remembers where
//! each value came from, checked against one schema, and read into types once. Nothing else in cogn looks
//! at a configuration file or a `COGN_*` variable.

mod known_secrets;
mod layer;
mod merged;
mod proxy;
mod preset;
mod rule;
mod schema;
mod secret;
mod settings;
mod source;
mod vendor_env;

pub(crate) use known_secrets::known_secrets;
pub(crate) use merged::Merged;
pub(crate) use proxy::proxy;
pub(crate) use preset::Preset;
pub(crate) use schema::{Problem, SCHEMA, problems};
pub(crate) use secret::{from_environment as secret_of_environment, redact, resolve};
pub(crate) use settings::{
    Backend, BackendKind, Gate, GateAction, GateRule, Jwt, LogFormat, Media, MediaFetch, MediaOversize,
    Settings, TimeoutSettings,
};
pub(crate) use source::Sources;

#[cfg(test)]
mod tests;
