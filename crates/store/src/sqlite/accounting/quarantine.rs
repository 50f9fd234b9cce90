//! Files of the accounting log with unreadable records. Their readable records are applied, and the files are
//! moved aside unchanged instead of being removed, so that nothing is lost without a trace.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::decoded_log::DecodedLog;
use super::segment::files_named;

/// Part of the name, after that of the database.
const MARK: &str = "-quarantine-";
/// Characters of the checksum in the name.
const NAME_CHARS: usize = 16;

/// A file that was moved aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantinedLog {
    pub path: PathBuf,
    /// The number of unreadable records.
    pub unreadable: usize,
    /// Of the file, in hexadecimal.
    pub sha256: String,
    /// Whether the file is the one that was moved aside: its checksum is in its name.
    pub is_unchanged: bool,
}

/// Where to move a file, with a warning in the log.
pub(super) fn quarantine(database: &Path, file: &Path, log: &DecodedLog) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(MARK);
    path.push(name(&log.sha256));
    let path = PathBuf::from(path);
    tracing::warn!(
        file = %file.display(),
        quarantine = %path.display(),
        unreadable = log.unreadable,
        applied = log.records.len(),
        sha256 = log.sha256,
        "quarantined unreadable accounting records"
    );
    path
}

/// The files that were moved aside, by name.
pub fn quarantined(database: &Path) -> io::Result<Vec<QuarantinedLog>> {
    let mut paths = match files_named(database, MARK) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        paths => paths?,
    };
    paths.sort();
    let inspect = |path: PathBuf| {
        let (log, _) = DecodedLog::read(&File::open(&path)?)?;
        let text = path.to_string_lossy();
        Ok(QuarantinedLog {
            is_unchanged: text.ends_with(name(&log.sha256)),
            unreadable: log.unreadable,
            sha256: log.sha256,
            path,
        })
    };
    paths.into_iter().map(inspect).collect()
}

fn name(sha256: &str) -> &str {
    sha256.get(..NAME_CHARS).unwrap_or(sha256)
}
