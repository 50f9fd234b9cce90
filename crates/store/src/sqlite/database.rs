//! The database file and its connections: several for reading, and one for rare writes (keys, reviews,
//! pruning). Runs and events are written by [`super::writer`].

use std::path::Path;
use std::time::Duration;

use engine::port::JournalError;
use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

use super::row::map_error;
use super::schema;
use crate::limits;

pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// SQLite's default, used for new files.
const PAGE_BYTES: u64 = 4096;

/// Options of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum size of the file; writes that exceed it are refused.
    pub bytes_max: Option<u64>,
}

impl Options {
    pub(super) fn pages_max(self) -> Option<u64> {
        self.bytes_max.map(|bytes_max| (bytes_max / PAGE_BYTES).max(1))
    }
}

#[derive(Clone, Debug)]
pub(super) struct Database {
    pub(super) writer: SqlitePool,
    pub(super) readers: SqlitePool,
}

impl Database {
    /// Opens the file and creates it if it does not exist.
    pub(super) async fn open(path: &Path, options: Options) -> Result<Self, JournalError> {
        let mut connect = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .foreign_keys(true)
            .pragma("cache_size", cache_size(limits::READER_CACHE_KIB).to_string())
            .busy_timeout(BUSY_TIMEOUT);
        if let Some(pages) = options.pages_max() {
            connect = connect.pragma("max_page_count", pages.to_string());
        }
        let writer = SqlitePoolOptions::new()
            .max_connections(1)
            .connect_with(connect.clone())
            .await
            .map_err(map_error)?;
        schema::migrate(&writer).await?;
        let readers = SqlitePoolOptions::new()
            .max_connections(limits::READERS_MAX)
            .connect_lazy_with(connect);
        Ok(Self { writer, readers })
    }

    pub(super) async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}

/// A negative value counts KiB, not pages.
pub(super) fn cache_size(kib: u32) -> i64 {
    -i64::from(kib)
}
