//! The database file and the connections that read it. Writes are made by [`super::writer`].

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::port::JournalError;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::Semaphore;

use super::row::{closed, failed};
use super::schema;
use crate::{Durability, limits};

pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// SQLite's default, used for new files.
const PAGE_BYTES: u64 = 4096;

/// Options of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum size of the file; writes that exceed it are refused.
    pub bytes_max: Option<u64>,
    pub durability: Durability,
}

impl Options {
    pub(super) fn pages_max(self) -> Option<u64> {
        self.bytes_max.map(|bytes_max| (bytes_max / PAGE_BYTES).max(1))
    }
}

/// Opens a connection.
pub(super) fn connect(path: &Path, cache_kib: u32) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // A negative value counts KiB, not pages.
    connection.pragma_update(None, "cache_size", -i64::from(cache_kib))?;
    Ok(connection)
}

/// Creates the file if it does not exist, and migrates it.
pub(super) fn prepare(path: &Path) -> Result<(), JournalError> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
    connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))
        .map_err(failed)?;
    schema::migrate(&connection)
}

/// A few connections, each used by one query at a time on a thread that may block.
#[derive(Clone)]
pub(super) struct Readers {
    path: PathBuf,
    idle: Arc<Mutex<Vec<Connection>>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            idle: Arc::default(),
            permits: Arc::new(Semaphore::new(limits::READERS_MAX)),
        }
    }

    pub(super) async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let permit = self.permits.clone().acquire_owned().await;
        let permit = permit.map_err(|_| closed())?;
        let this = self.clone();
        let work = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let connection = match this.idle().pop() {
                Some(connection) => connection,
                None => connect(&this.path, limits::READER_CACHE_KIB).map_err(failed)?,
            };
            let found = query(&connection);
            this.idle().push(connection);
            found
        });
        work.await.map_err(JournalError::from_backend)?
    }

    /// Returns when all queries have ended; later ones are refused.
    pub(super) async fn close(&self) {
        let all = u32::try_from(limits::READERS_MAX).unwrap_or(u32::MAX);
        let permits = self.permits.acquire_many(all).await;
        self.permits.close();
        self.idle().clear();
        drop(permits);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        // No code panics while it holds the lock.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readers")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
