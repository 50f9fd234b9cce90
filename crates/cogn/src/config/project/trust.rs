//! The trusted files: one record for each path, with the hash of the content that the user has agreed to. A
//! changed file is not trusted.

use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::atomic_file;
use crate::data_folder::state_folder;
use crate::output::hinted;

/// The records of a user.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrustStore {
    /// `None` if the user has no home folder: nothing is trusted then.
    folder: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TrustState {
    Trusted,
    /// Another content was trusted.
    Changed,
    Unknown,
}

/// A path with the hash of its trusted content.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TrustRecord {
    pub(crate) path: PathBuf,
    pub(crate) sha256: String,
}

impl TrustStore {
    pub(crate) fn from_environment() -> Self {
        Self {
            folder: state_folder().map(|state| state.join("trust")),
        }
    }

    /// The file of the record of a path; a server watches it.
    pub(crate) fn record_path(&self, path: &Path) -> Option<PathBuf> {
        let name = hash(canonical(path).as_os_str().as_encoded_bytes());
        Some(self.folder.as_ref()?.join(format!("{name}.json")))
    }

    pub(crate) fn state(&self, path: &Path, text: &str) -> TrustState {
        let record = self.record_path(path).and_then(|record| read(&record).ok());
        match record {
            Some(record) if record.path != canonical(path) => TrustState::Unknown,
            Some(record) if record.sha256 == hash(text.as_bytes()) => TrustState::Trusted,
            Some(_) => TrustState::Changed,
            None => TrustState::Unknown,
        }
    }

    pub(crate) fn trust(&self, path: &Path, text: &str) -> Result<TrustRecord> {
        let file = self.record_path(path).ok_or_else(no_home)?;
        let record = TrustRecord {
            path: canonical(path),
            sha256: hash(text.as_bytes()),
        };
        let folder = file.parent().ok_or_else(no_home)?;
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        atomic_file::write_json(&file, &json!(record))?;
        Ok(record)
    }

    /// Returns whether the path had a record.
    pub(crate) fn revoke(&self, path: &Path) -> Result<bool> {
        let file = self.record_path(path).ok_or_else(no_home)?;
        match fs::remove_file(&file) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(anyhow::Error::new(error).context(format!("cannot remove {}", file.display()))),
        }
    }

    /// All records by path. Damaged ones are omitted, as they trust nothing.
    pub(crate) fn records(&self) -> Vec<TrustRecord> {
        let listed = self.folder.as_ref().and_then(|folder| fs::read_dir(folder).ok());
        let files = listed.into_iter().flatten().flatten();
        let mut records: Vec<_> = files.filter_map(|entry| read(&entry.path()).ok()).collect();
        records.sort_by(|a, b| a.path.cmp(&b.path));
        records
    }
}

fn read(file: &Path) -> Result<TrustRecord> {
    let text = fs::read_to_string(file)?;
    serde_json::from_str(&text).map_err(|error| anyhow!(error))
}

/// The path without symbolic links, so that a file has one record. A file that is gone keeps its path as given.
fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

fn hash(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

fn no_home() -> anyhow::Error {
    hinted(
        "no home folder to store the trust in",
        "set HOME or XDG_STATE_HOME, or pass the file as --config FILE",
    )
}
