//! The configuration: layers of TOML and environment, merged into one tree that stores the origin of each
//! value, validated against one schema, and deserialised once. No other code of cogn reads configuration
//! files or `COGN_*` settings.

mod known_secrets;
mod layer;
mod merged;
mod preset;
pub(crate) mod project;
mod proxy;
mod renamed;
mod rule;
mod schema;
mod secret;
mod settings;
mod source;
mod vendor_env;

pub(crate) use known_secrets::known_secrets;
pub(crate) use merged::Merged;
pub(crate) use preset::Preset;
pub(crate) use proxy::proxy;
pub(crate) use schema::{Problem, SCHEMA, problems};
pub(crate) use secret::{from_environment as secret_of_environment, redact, resolve};
pub(crate) use settings::{
    Backend, BackendKind, Gate, GateAction, GateRule, Jwt, LogFormat, Media, MediaFetch, MediaOversize,
    Server, Settings, TimeoutSettings,
};
pub(crate) use source::{Sources, parse, read};

#[cfg(test)]
mod tests;
