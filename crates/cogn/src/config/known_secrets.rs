//! Every secret that this process knows: those of the configuration, and whatever the environment holds
//! under a name that says so. What is written to files is held against them.

use std::env;
use std::path::Path;

use anyhow::Result;
use secrecy::SecretString;

use super::secret::resolve;
use super::settings::Settings;
use super::source::Sources;

const ENDINGS: &[&str] = &["_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_CREDENTIALS"];

pub(crate) fn known_secrets(config: Option<&Path>) -> Result<Vec<SecretString>> {
    let settings = Settings::of(&Sources::from_environment(config)?.merge()?)?;
    // One that cannot be had cannot leak either.
    let configured = settings
        .credentials
        .iter()
        .filter_map(|credential| resolve(credential).ok());
    let named = env::vars_os().filter_map(|(name, value)| {
        let secret = is_secret_name(&name.into_string().ok()?);
        let value = secret.then(|| value.into_string().ok()).flatten()?;
        (!value.trim().is_empty()).then(|| SecretString::from(value.trim()))
    });
    Ok(configured.chain(named).collect())
}

/// Whether a variable of this name holds a secret, by what such names are like.
pub(super) fn is_secret_name(name: &str) -> bool {
    let name = name.to_uppercase();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}
