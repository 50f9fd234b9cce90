//! The journal in SQLite.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use engine::Tenant;
use engine::port::{
    EncodedEvent, EventKind, IdempotencyClaim, IdempotencyMatch, Journal, JournalEntry, JournalError,
    LifecycleRecord, NewRun, Review, RunEnd, RunRecord, RunState,
};
use ir::RunId;
use rusqlite::{Connection, Row, params};

use super::database::{Options, Readers, prepare};
use super::keys::SqliteKeys;
use super::row::{corrupt, failed, get, run_row, select, select_one, text, to_i64, to_u64};
use super::spool::{Calls, Words};
use super::writer::{WriteOp, Writer, idempotency_match};
use crate::limits;

#[derive(Debug)]
pub struct SqliteJournal {
    pub(super) readers: Readers,
    pub(super) writer: Writer,
    pub(super) calls: Calls,
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
        let calls = Calls::new(path.to_owned(), writer.clone());
        Ok(Self {
            readers: Readers::new(path),
            writer,
            calls,
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
        self.calls.close().await;
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

    async fn write(&self, tenant: &Tenant, run: RunId, words: Words<'_>) -> Result<(), JournalError> {
        if self.calls.say(tenant, run, words)? {
            return Ok(());
        }
        let write = WriteOp::Append {
            held: self.calls.take_over(tenant, run).map(Box::new),
            tenant: tenant.clone(),
            run,
            after: words.after,
            events: words.events.to_vec(),
            end: words.end.cloned(),
        };
        self.writer.write(write).await
    }

    /// Events of a run that are not in the tables yet.
    fn held(&self, tenant: &Tenant, run: RunId) -> Vec<JournalEntry> {
        let entries = (1..).zip(self.calls.held(tenant, run).events);
        entries
            .map(|(offset, event)| JournalEntry { offset, event })
            .collect()
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
    async fn create(&self, tenant: &Tenant, run: &NewRun) -> Result<(), JournalError> {
        let (tenant, run) = (tenant.clone(), run.clone());
        self.writer.write(WriteOp::Create { tenant, run }).await
    }

    async fn append(
        &self,
        tenant: &Tenant,
        run: RunId,
        after: u64,
        events: &[EncodedEvent],
    ) -> Result<(), JournalError> {
        let end = None;
        self.write(tenant, run, Words { after, events, end }).await
    }

    async fn finish(
        &self,
        tenant: &Tenant,
        run: RunId,
        after: u64,
        events: &[EncodedEvent],
        end: &RunEnd,
    ) -> Result<(), JournalError> {
        let end = Some(end);
        self.write(tenant, run, Words { after, events, end }).await
    }

    fn record(&self, tenant: &Tenant, booking: LifecycleRecord) -> Result<(), JournalError> {
        self.calls.book(tenant, booking)
    }

    fn buffer(&self, tenant: &Tenant, booking: LifecycleRecord) -> Result<(), JournalError> {
        self.calls.note(tenant, booking)
    }

    fn flush(&self, run: RunId) -> Result<(), JournalError> {
        self.calls.commit(run)
    }

    async fn read(
        &self,
        tenant: &Tenant,
        run: RunId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<JournalEntry>, JournalError> {
        let entries = self.entries(tenant, run, after, limit).await?;
        if !entries.is_empty() {
            return Ok(entries);
        }
        match self.find(tenant, run).await? {
            None => Err(JournalError::Unknown(run)),
            // It was spooled, and is in the tables by now.
            Some(row) if row.last_offset > after => {
                let entries = self.entries(tenant, run, after, limit).await?;
                if !entries.is_empty() {
                    return Ok(entries);
                }
                let held = self.held(tenant, run).into_iter();
                Ok(held.filter(|entry| entry.offset > after).take(limit).collect())
            }
            Some(_) => Ok(entries),
        }
    }

    async fn find_chunk(
        &self,
        tenant: &Tenant,
        run: RunId,
        seq: u64,
    ) -> Result<Option<JournalEntry>, JournalError> {
        if let Some(entry) = self.entry(tenant, run, seq).await? {
            return Ok(Some(entry));
        }
        if self.find(tenant, run).await?.is_none() {
            return Err(JournalError::Unknown(run));
        }
        // Spooled events are in the tables by now, unless writes fail.
        let entry = self.entry(tenant, run, seq).await?;
        let held = || self.held(tenant, run).into_iter();
        Ok(entry.or_else(|| held().find(|entry| entry.event.seq == Some(seq))))
    }

    async fn find(&self, tenant: &Tenant, run: RunId) -> Result<Option<RunRecord>, JournalError> {
        let settled = self.calls.settle().await;
        let row = self.row(tenant, run).await?;
        let Err(error) = settled else { return Ok(row) };
        // Data that is not in the tables is read from the spool.
        let held = self.calls.held(tenant, run);
        let Some(mut row) = row.or_else(|| held.new.map(spooled_row)) else {
            return Err(error);
        };
        if row.state == RunState::Running && row.last_offset == 0 {
            row.last_offset = held.events.len() as u64;
            if let Some(end) = held.end {
                row.state = end.finish.state();
                row.finished = Some(end.finish);
                row.review = end.review.map(|reason| Review {
                    reason,
                    verdict: None,
                });
            }
        }
        Ok(Some(row))
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
        self.calls.pick_up().await?;
        let settled = self.calls.settle().await;
        let query = |connection: &Connection| {
            select(connection, include_str!("query/unfinished_runs.sql"), [], run_row)
        };
        let runs = self.readers.read(query).await?;
        if settled.is_ok() {
            return Ok(runs);
        }
        // Data that is not in the tables is read from the spool: some runs have ended, others are missing in
        // the tables.
        let mut candidates: BTreeSet<_> = self.calls.begun().into_iter().collect();
        candidates.extend(runs.into_iter().map(|(tenant, row)| (tenant, row.id)));
        let mut runs = Vec::new();
        for (tenant, run) in candidates {
            let row = self.find(&tenant, run).await?;
            let row = row.filter(|row| row.state == RunState::Running);
            runs.extend(row.map(|row| (tenant, row)));
        }
        runs.sort_by_key(|(_, row)| row.id);
        Ok(runs)
    }
}

/// A run that is only in the spool.
fn spooled_row(new: NewRun) -> RunRecord {
    RunRecord {
        id: new.id,
        kind: new.kind,
        client: new.client,
        command: new.command,
        state: RunState::Running,
        created_at_ms: new.created_at_ms,
        finished: None,
        review: None,
        last_offset: 0,
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
