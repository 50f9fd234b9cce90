//! The journal in SQLite.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use engine::Tenant;
use engine::port::{
    Account, Commit, EncodedEvent, EventKind, IdempotencyClaim, IdempotencyMatch, Journal, JournalEntry,
    JournalError, NewRun, RunEnd, RunKind, RunRecord, RunState,
};
use ir::RunId;
use rusqlite::{Connection, Row, params};
use tracing::warn;

use super::accounting::Accounting;
use super::database::{Options, Readers, prepare};
use super::keys::SqliteKeys;
use super::quarantine::DamagedRow;
use super::row::{corrupt, failed, get, run_row, select, select_one, text, to_i64, to_u64};
use super::writer::{WriteOp, Writer, idempotency_match};
use crate::limits;

#[derive(Debug)]
pub struct SqliteJournal {
    pub(super) readers: Readers,
    pub(super) writer: Writer,
    pub(super) accounting: Accounting,
    path: PathBuf,
}

impl SqliteJournal {
    /// Opens the file and creates it if it does not exist.
    pub async fn open(path: &Path) -> Result<Self, JournalError> {
        Self::open_with(path, Options::default()).await
    }

    pub async fn open_with(path: &Path, options: Options) -> Result<Self, JournalError> {
        let file = path.to_owned();
        let open = move || {
            prepare(&file)?;
            Writer::start(&file, options)
        };
        let writer = tokio::task::spawn_blocking(open).await;
        let writer = writer.map_err(JournalError::from_backend)??;
        Ok(Self {
            readers: Readers::new(path),
            accounting: Accounting::start(path, writer.clone())?,
            writer,
            path: path.to_owned(),
        })
    }

    /// The API keys in the same file.
    pub fn keys(&self) -> SqliteKeys {
        SqliteKeys {
            readers: self.readers.clone(),
            writer: self.writer.clone(),
        }
    }

    /// Closes all connections; what was written remains.
    pub async fn close(&self) {
        self.accounting.close().await;
        self.writer.close().await;
        self.readers.close().await;
    }

    pub(super) async fn row(&self, tenant: &Tenant, run: RunId) -> Result<Option<RunRecord>, JournalError> {
        let tenant = tenant.clone();
        let query = move |connection: &Connection| {
            let values = params![tenant.as_str(), run.to_string()];
            select_one(connection, include_str!("query/find_run.sql"), values, run_row)
        };
        Ok(self.readers.read(query).await?.map(|(_, row)| row))
    }

    /// Moves damaged rows away. Where that fails, they are skipped again at the next start.
    async fn quarantine(&self, damaged: Vec<DamagedRow>) {
        for row in damaged {
            let (id, reason) = (row.id(), String::from(row.reason()));
            let moved = self
                .writer
                .run(move |connection| row.quarantine(connection))
                .await;
            let error = moved.err().map(tracing::field::display);
            warn!(
                run = id,
                reason, error, "damaged row of a run moved to the table damaged_run"
            );
        }
    }

    async fn entry(
        &self,
        tenant: &Tenant,
        run: RunId,
        seq: u64,
    ) -> Result<Option<JournalEntry>, JournalError> {
        // Sequence numbers come from clients, and the tables contain none that large.
        let Ok(seq) = i64::try_from(seq) else {
            return Ok(None);
        };
        let tenant = tenant.clone();
        let query = move |connection: &Connection| {
            let values = params![tenant.as_str(), run.to_string(), seq];
            select_one(connection, include_str!("query/find_chunk.sql"), values, entry)
        };
        self.readers.read(query).await
    }

    async fn entries(
        &self,
        tenant: &Tenant,
        run: RunId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<JournalEntry>, JournalError> {
        let tenant = tenant.clone();
        let (after, limit) = (to_i64(after)?, to_i64(limit as u64)?);
        let query = move |connection: &Connection| {
            let mut statement = connection
                .prepare_cached(include_str!("query/read_events.sql"))
                .map_err(failed)?;
            let values = params![tenant.as_str(), run.to_string(), after, limit];
            let mut rows = statement.query(values).map_err(failed)?;
            let (mut entries, mut bytes) = (Vec::new(), 0);
            while let Some(row) = rows.next().map_err(failed)? {
                let entry = entry(row)?;
                bytes += entry.event.body.len();
                entries.push(entry);
                if bytes >= limits::PAGE_BYTES_MAX {
                    break;
                }
            }
            Ok(entries)
        };
        self.readers.read(query).await
    }
}

#[async_trait]
impl Journal for SqliteJournal {
    fn create(&self, tenant: &Tenant, run: &NewRun) -> Commit {
        let (tenant, run) = (tenant.clone(), run.clone());
        self.writer.write(WriteOp::Create { tenant, run })
    }

    fn append(&self, tenant: &Tenant, run: RunId, after: u64, events: &[EncodedEvent]) -> Commit {
        self.writer.write(WriteOp::Append {
            tenant: tenant.clone(),
            run,
            after,
            events: events.to_vec(),
            end: None,
        })
    }

    fn finish(
        &self,
        tenant: &Tenant,
        run: RunId,
        after: u64,
        events: &[EncodedEvent],
        end: &RunEnd,
    ) -> Commit {
        self.writer.write(WriteOp::Append {
            tenant: tenant.clone(),
            run,
            after,
            events: events.to_vec(),
            end: Some(end.clone()),
        })
    }

    fn open_account(&self, tenant: &Tenant, call: &NewRun) -> Result<(Account, Commit), JournalError> {
        self.accounting.open(tenant, call)
    }

    async fn read(
        &self,
        tenant: &Tenant,
        run: RunId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<JournalEntry>, JournalError> {
        let entries = self.entries(tenant, run, after, limit).await?;
        if entries.is_empty() && self.find(tenant, run).await?.is_none() {
            return Err(JournalError::Unknown(run));
        }
        Ok(entries)
    }

    async fn find_chunk(
        &self,
        tenant: &Tenant,
        run: RunId,
        seq: u64,
    ) -> Result<Option<JournalEntry>, JournalError> {
        let entry = self.entry(tenant, run, seq).await?;
        if entry.is_none() && self.find(tenant, run).await?.is_none() {
            return Err(JournalError::Unknown(run));
        }
        Ok(entry)
    }

    async fn find(&self, tenant: &Tenant, run: RunId) -> Result<Option<RunRecord>, JournalError> {
        let row = self.row(tenant, run).await?;
        // The start or the end of a relayed call may still be in the accounting log.
        let is_current = |row: &RunRecord| row.kind != RunKind::Relay || row.state != RunState::Running;
        if row.as_ref().is_some_and(is_current) {
            return Ok(row);
        }
        self.accounting.settle().await?;
        self.row(tenant, run).await
    }

    async fn find_by_idempotency_key(
        &self,
        tenant: &Tenant,
        client: &str,
        once: &IdempotencyClaim,
    ) -> Result<Option<IdempotencyMatch>, JournalError> {
        let (tenant, client, once) = (tenant.clone(), String::from(client), once.clone());
        let query = move |connection: &Connection| idempotency_match(connection, &tenant, &client, &once);
        self.readers.read(query).await
    }

    async fn unfinished(&self) -> Result<Vec<(Tenant, RunRecord)>, JournalError> {
        self.accounting.adopt(&self.path).await?;
        // A full file does not prevent a start: the records are applied later.
        match self.accounting.settle().await {
            Ok(()) | Err(JournalError::Full) => {}
            Err(error) => return Err(error),
        }
        let query = |connection: &Connection| {
            let read = |row: &Row<'_>| match run_row(row) {
                Ok(found) => Ok(Ok(found)),
                Err(error) => DamagedRow::of(row, &error).map(Err),
            };
            select(connection, include_str!("query/unfinished_runs.sql"), [], read)
        };
        let (mut runs, mut damaged) = (Vec::new(), Vec::new());
        for row in self.readers.read(query).await? {
            match row {
                Ok(run) => runs.push(run),
                Err(row) => damaged.push(row),
            }
        }
        self.quarantine(damaged).await;
        Ok(runs)
    }

    async fn count_recovery(&self, tenant: &Tenant, run: RunId) -> Result<u32, JournalError> {
        let tenant = tenant.clone();
        let count = move |connection: &Connection| {
            let values = params![tenant.as_str(), run.to_string()];
            let text = include_str!("query/count_recovery.sql");
            select_one(connection, text, values, |row| get::<u32>(row, "recoveries"))
        };
        self.writer.run(count).await?.ok_or(JournalError::Unknown(run))
    }
}

fn entry(row: &Row<'_>) -> Result<JournalEntry, JournalError> {
    let kind = text(row, "kind")?;
    let body = text(row, "body")?;
    let seq: Option<i64> = get(row, "seq")?;
    let event = EncodedEvent {
        kind: EventKind::find(kind).ok_or_else(|| corrupt("kind", kind))?,
        seq: seq.map(to_u64).transpose()?,
        body: Arc::from(body),
    };
    Ok(JournalEntry {
        offset: to_u64(get(row, "offset")?)?,
        event,
    })
}
