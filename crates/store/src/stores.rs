//! The stores of one server, opened by the engine that the settings name.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use engine::port::{Archive, Journal, JournalError};
use tenancy::KeyStore;

use crate::Durability;
use crate::folder::create_private_dir;
use crate::sqlite::{Options, SqliteJournal};

/// The database of a server: `sqlite:FILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    Sqlite(PathBuf),
}

impl FromStr for StoreUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(PathBuf::from(path))),
            Some(("postgres" | "postgresql", _)) => {
                Err(String::from("PostgreSQL is not supported; use sqlite:FILE"))
            }
            _ => Err(String::from("not the address of a store; use sqlite:FILE")),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    pub url: StoreUrl,
    /// Maximum size of the database; writes that exceed it are refused.
    pub bytes_max: Option<u64>,
    pub durability: Durability,
}

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot create {}", .path.display())]
    CreateFolder { path: PathBuf, source: io::Error },
    #[error("cannot open {}", .path.display())]
    OpenFile { path: PathBuf, source: io::Error },
    #[error("cannot open the journal {}", .path.display())]
    OpenJournal { path: PathBuf, source: JournalError },
    #[error("another server uses the journal {}", .path.display())]
    Locked { path: PathBuf },
}

/// The open stores of a server.
#[derive(Clone, Debug)]
pub struct Stores {
    pub journal: Arc<dyn Journal>,
    pub archive: Arc<dyn Archive>,
    pub keys: Arc<dyn KeyStore>,
    sqlite: Arc<SqliteJournal>,
    path: PathBuf,
}

/// Opens the stores, and creates what does not exist. Only the owner may read the files: they contain requests
/// and the hashes of keys.
pub async fn open(settings: &StoreSettings) -> Result<Stores, StoreError> {
    let StoreUrl::Sqlite(path) = &settings.url;
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        create_private_dir(folder).map_err(|source| StoreError::CreateFolder {
            path: folder.to_owned(),
            source,
        })?;
    }
    open_private_file(path)?;
    let options = Options {
        bytes_max: settings.bytes_max,
        durability: settings.durability,
    };
    let journal = SqliteJournal::open_with(path, options).await;
    let journal = journal.map_err(|source| StoreError::OpenJournal {
        path: path.clone(),
        source,
    })?;
    let keys = Arc::new(journal.keys());
    let journal = Arc::new(journal);
    Ok(Stores {
        journal: journal.clone(),
        archive: journal.clone(),
        keys,
        sqlite: journal,
        path: path.clone(),
    })
}

impl Stores {
    /// Locks the stores for one server: a second server would recover the runs that the first is executing.
    pub fn lock(&self) -> Result<StoreLock, StoreError> {
        let mut name = self.path.as_os_str().to_owned();
        name.push("-server");
        let file = open_private_file(Path::new(&name))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(StoreError::Locked {
                path: self.path.clone(),
            }),
            // A file system without locks does not prevent serving.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(StoreLock(file)),
        }
    }

    /// The folder for the media of unfinished runs.
    pub fn media_folder(&self) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push("-media");
        PathBuf::from(name)
    }

    /// Closes all connections; what was written remains.
    pub async fn close(&self) {
        self.sqlite.close().await;
    }
}

/// Released when it is dropped or the process ends, also when it is killed.
pub struct StoreLock(#[expect(dead_code, reason = "only dropped")] File);

impl fmt::Debug for StoreLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreLock")
    }
}

/// Opens a file, and creates it so that only its owner can access it; SQLite gives its companion files the
/// same permissions.
fn open_private_file(path: &Path) -> Result<File, StoreError> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(|source| StoreError::OpenFile {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::StoreUrl;

    #[test]
    fn address_names_the_engine() {
        let file = StoreUrl::Sqlite(PathBuf::from("a/b:c.db"));
        assert_eq!("sqlite:a/b:c.db".parse(), Ok(file));
        for (address, reason) in [
            ("postgres://cogn@127.0.0.1/cogn", "PostgreSQL is not supported"),
            ("mysql:x", "not the address"),
            ("journal.db", "not the address"),
            ("sqlite:", "not the address"),
        ] {
            let error = address.parse::<StoreUrl>().unwrap_err();
            assert!(
                error.starts_with(reason) && error.contains("sqlite:FILE"),
                "{error}"
            );
        }
    }
}
