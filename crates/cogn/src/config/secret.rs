//! Resolves credentials. A configuration file contains no secrets, only the name of a variable or the path of
//! a file; the value has a type that cannot be printed.

use std::borrow::Cow;
use std::path::Path;
use std::sync::{PoisonError, RwLock};
use std::{env, fs};

use secrecy::{ExposeSecret, SecretString};

use super::settings::CredentialSettings;

const SECRET_BYTES_MAX: u64 = 64 * 1024;

/// All resolved secrets, for redaction of texts from other sources, such as vendors' error messages.
static KNOWN: RwLock<Vec<SecretString>> = RwLock::new(Vec::new());

/// Returns the secret, or why it is not available. The reason never contains the value.
pub(crate) fn resolve(credential: &CredentialSettings) -> Result<SecretString, String> {
    let secret = match (&credential.env, &credential.file) {
        (Some(name), None) => from_environment(name),
        (None, Some(path)) => from_file(path),
        _ => Err(format!(
            "credential `{}` needs either `env` or `file`",
            credential.name
        )),
    }?;
    remember(&secret);
    Ok(secret)
}

fn remember(secret: &SecretString) {
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    let is_known = known
        .iter()
        .any(|known| known.expose_secret() == secret.expose_secret());
    if !is_known {
        known.push(secret.clone());
    }
}

/// The text with all known secrets redacted.
pub(crate) fn redact(text: &[u8]) -> Cow<'_, [u8]> {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    let mut text = Cow::Borrowed(text);
    for secret in known.iter() {
        if let Cow::Owned(clean) = providers::redact(&text, secret.expose_secret().as_bytes(), "[secret]") {
            text = Cow::Owned(clean);
        }
    }
    text
}

pub(crate) fn from_environment(name: &str) -> Result<SecretString, String> {
    match env::var_os(name).map(std::ffi::OsString::into_string) {
        Some(Ok(value)) if !value.trim().is_empty() => Ok(SecretString::from(value.trim())),
        Some(Ok(_)) => Err(format!("the environment variable {name} is empty")),
        Some(Err(_)) => Err(format!("the environment variable {name} is not text")),
        None => Err(format!("the environment variable {name} is not set")),
    }
}

fn from_file(path: &Path) -> Result<SecretString, String> {
    let shown = path.display();
    let size = fs::metadata(path)
        .map_err(|error| format!("cannot read {shown}: {error}"))?
        .len();
    if size > SECRET_BYTES_MAX {
        return Err(format!("{shown} is too large for a secret"));
    }
    let text = fs::read_to_string(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
    match text.trim() {
        "" => Err(format!("{shown} is empty")),
        text => Ok(SecretString::from(text)),
    }
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::{redact, remember};

    #[test]
    fn redacts_all_occurrences_of_known_secrets() {
        remember(&SecretString::from("sk-canary-0123"));
        remember(&SecretString::from("abc"));
        for (text, clean) in [
            ("nothing here, abcd", "nothing here, abcd"),
            ("key=abc, \"abc\"", "key=[secret], \"[secret]\""),
            ("sk-canary-0123", "[secret]"),
            ("a sk-canary-0123sk-canary-0123 b", "a [secret][secret] b"),
        ] {
            assert_eq!(redact(text.as_bytes()), clean.as_bytes());
        }
    }
}
