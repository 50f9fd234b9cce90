//! All secrets of this process: those of the configuration, and environment variables whose names look like
//! secrets. They are redacted from recordings.

use std::env;
use std::path::Path;

use anyhow::Result;
use secrecy::SecretString;

use super::secret::resolve;
use super::settings::Settings;
use super::source::Sources;

const ENDINGS: &[&str] = &["_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_CREDENTIALS"];

/// Shorter values of variables that the configuration does not name are settings such as `1` or `auto`.
const NAMED_BYTES_MIN: usize = 6;

pub(crate) fn known_secrets(config: Option<&Path>) -> Result<Vec<SecretString>> {
    let settings = Settings::of(&Sources::from_environment(config)?.merge()?)?;
    // A secret that cannot be resolved cannot leak.
    let configured = settings
        .credentials
        .iter()
        .filter_map(|credential| resolve(credential).ok());
    let named = env::vars_os().filter_map(|(name, value)| {
        let secret = is_secret_name(&name.into_string().ok()?);
        let value = secret.then(|| value.into_string().ok()).flatten()?;
        let value = value.trim();
        (value.len() >= NAMED_BYTES_MIN).then(|| SecretString::from(value))
    });
    Ok(configured.chain(named).collect())
}

/// Whether a variable with this name is likely to contain a secret, by the ending of the name.
pub(super) fn is_secret_name(name: &str) -> bool {
    let name = name.to_uppercase();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}
