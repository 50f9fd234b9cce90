//! The configuration file of a project: the nearest `cogn.toml` in the working folder or its parents. Anyone can
//! publish a project, so its file is read with few settings until the user has trusted it.

mod owner;
mod restrict;
mod trust;

use std::env;
use std::path::{Path, PathBuf};

pub(crate) use owner::refuse_other_owners;
pub(crate) use restrict::{restrict, restricted_settings};
pub(crate) use trust::{TrustState, TrustStore};

use super::source::{FILE_NAME, is_same, user_files};

/// Settings that a message names; the rest is counted.
const NAMED_MAX: usize = 8;

/// The nearest `cogn.toml` in the working folder or its parents.
pub(crate) fn nearest() -> Option<PathBuf> {
    let here = env::current_dir().ok()?;
    here.ancestors()
        .map(|folder| folder.join(FILE_NAME))
        .find(|path| path.is_file())
}

/// The same, unless it is a file of the user or of the system.
pub(crate) fn project_file() -> Option<PathBuf> {
    nearest().filter(|path| !user_files().iter().any(|file| is_same(file, path)))
}

/// The warning about settings that are ignored.
pub(super) fn warning(path: &Path, state: TrustState, ignored: &[String]) -> String {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let (path, folder) = (path.display(), folder.display());
    let named = ignored.iter().take(NAMED_MAX).cloned();
    let mut named = named.collect::<Vec<_>>().join(", ");
    if let Some(more) = ignored.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
        named.push_str(&format!(" and {more} more"));
    }
    let why = match state {
        TrustState::Changed => "has changed since you trusted it",
        TrustState::Trusted | TrustState::Unknown => "is not trusted yet",
    };
    format!(
        "{path} {why}; these settings in it are ignored: {named}. Such settings can run programs, read secrets or \
         send requests to other addresses. Read the file, and if you agree with it, run: cogn trust '{folder}'"
    )
}
