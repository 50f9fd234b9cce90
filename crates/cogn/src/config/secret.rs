//! Credentials: named in the configuration, kept elsewhere. A configuration file never holds a secret,
//! only the name of a variable or the path of a file; the value lives in a type that cannot be printed.

use std::path::Path;
use std::{env, fs};

use secrecy::SecretString;

use super::settings::Credential;

const SECRET_BYTES_MAX: u64 = 64 * 1024;

/// The secret itself, or why it cannot be had. The reason never contains the value.
pub(crate) fn resolve(credential: &Credential) -> Result<SecretString, String> {
    match (&credential.env, &credential.file) {
        (Some(name), None) => from_environment(name),
        (None, Some(path)) => from_file(path),
        _ => Err(format!(
            "credential `{}` needs either `env` or `file`",
            credential.name
        )),
    }
}

fn from_environment(name: &str) -> Result<SecretString, String> {
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
        return Err(format!("{shown} is too large to be a secret"));
    }
    let text = fs::read_to_string(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
    match text.trim() {
        "" => Err(format!("{shown} is empty")),
        text => Ok(SecretString::from(text)),
    }
}
