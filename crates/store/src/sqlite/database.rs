//! The file and its connections: several that read, and one for what is seldom written (keys, reviews, pruning).
//! Runs and events are written by the [`super::writer`].

use std::path::Path;
use std::time::Duration;

use engine::port::JournalError;
use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

use super::row::map_error;
use super::schema;
use crate::limits;

pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// SQLite's own default, and what new files get.
const PAGE_BYTES: u64 = 4096;

/// How the file is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The file grows no further; what does not fit is refused.
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
    /// Opens the file, and makes it where there is none.
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

/// Below zero it counts KiB, not pages.
pub(super) fn cache_size(kib: u32) -> i64 {
    -i64::from(kib)
}
