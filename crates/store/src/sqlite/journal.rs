//! The journal on SQLite. One connection writes, since SQLite has one writer anyway and waiting in our
//! own queue is fairer than its busy loop; several read.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::Tenant;
use engine::port::{Entry, Finish, Journal, JournalError, Kind, NewRun, Rendered, RunRow, State};
use ir::RunId;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteRow, SqliteSynchronous,
};
use sqlx::{Row, Sqlite, SqlitePool, Transaction};

use super::schema;

const READERS_MAX: u32 = 4;
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct SqliteJournal {
    writer: SqlitePool,
    readers: SqlitePool,
}

impl SqliteJournal {
    /// Opens the file, and makes it where there is none.
    pub async fn open(path: &Path) -> Result<Self, JournalError> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT);
        let writer = SqlitePoolOptions::new()
            .max_connections(1)
            .connect_with(options.clone())
            .await
            .map_err(JournalError::storage)?;
        schema::migrate(&writer).await?;
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS_MAX)
            .connect_lazy_with(options);
        Ok(Self { writer, readers })
    }

    /// Closes every connection; what was written stays.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    async fn write(
        &self,
        tenant: &Tenant,
        run: RunId,
        after: u64,
        events: &[Rendered],
        finish: Option<&Finish>,
    ) -> Result<(), JournalError> {
        let id = run.to_string();
        let mut transaction = self.writer.begin().await.map_err(JournalError::storage)?;
        let moved = sqlx::query(include_str!("query/advance_run.sql"))
            .bind(tenant.as_str())
            .bind(&id)
            .bind(integer(after)?)
            .bind(integer(events.len() as u64)?)
            .execute(&mut *transaction)
            .await
            .map_err(JournalError::storage)?;
        if moved.rows_affected() == 0 {
            return Err(refusal(&mut transaction, tenant, run).await);
        }
        for (offset, event) in (after + 1..).zip(events) {
            sqlx::query(include_str!("query/insert_event.sql"))
                .bind(tenant.as_str())
                .bind(&id)
                .bind(integer(offset)?)
                .bind(event.kind.as_str())
                .bind(event.seq.map(integer).transpose()?)
                .bind(&*event.body)
                .execute(&mut *transaction)
                .await
                .map_err(JournalError::storage)?;
        }
        if let Some(finish) = finish {
            sqlx::query(include_str!("query/finish_run.sql"))
                .bind(tenant.as_str())
                .bind(&id)
                .bind(finish.state().as_str())
                .bind(finish.code.as_deref())
                .bind(integer(finish.at_ms)?)
                .execute(&mut *transaction)
                .await
                .map_err(JournalError::storage)?;
        }
        transaction.commit().await.map_err(JournalError::storage)
    }
}

#[async_trait]
impl Journal for SqliteJournal {
    async fn create(&self, tenant: &Tenant, run: &NewRun) -> Result<(), JournalError> {
        let made = sqlx::query(include_str!("query/create_run.sql"))
            .bind(tenant.as_str())
            .bind(run.id.to_string())
            .bind(&run.module)
            .bind(&run.command)
            .bind(integer(run.created_at_ms)?)
            .execute(&self.writer)
            .await
            .map_err(JournalError::storage)?;
        if made.rows_affected() == 0 {
            return Err(JournalError::Exists(run.id));
        }
        Ok(())
    }

    async fn append(
        &self,
        tenant: &Tenant,
        run: RunId,
        after: u64,
        events: &[Rendered],
    ) -> Result<(), JournalError> {
        self.write(tenant, run, after, events, None).await
    }

    async fn finish(
        &self,
        tenant: &Tenant,
        run: RunId,
        after: u64,
        events: &[Rendered],
        finish: &Finish,
    ) -> Result<(), JournalError> {
        self.write(tenant, run, after, events, Some(finish)).await
    }

    async fn read(
        &self,
        tenant: &Tenant,
        run: RunId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Entry>, JournalError> {
        let rows = sqlx::query(include_str!("query/read_events.sql"))
            .bind(tenant.as_str())
            .bind(run.to_string())
            .bind(integer(after)?)
            .bind(integer(limit as u64)?)
            .fetch_all(&self.readers)
            .await
            .map_err(JournalError::storage)?;
        if rows.is_empty() && self.find(tenant, run).await?.is_none() {
            return Err(JournalError::Unknown(run));
        }
        rows.iter().map(entry).collect()
    }

    async fn locate(&self, tenant: &Tenant, run: RunId, seq: u64) -> Result<Option<Entry>, JournalError> {
        let row = sqlx::query(include_str!("query/locate_event.sql"))
            .bind(tenant.as_str())
            .bind(run.to_string())
            .bind(integer(seq)?)
            .fetch_optional(&self.readers)
            .await
            .map_err(JournalError::storage)?;
        match row {
            Some(row) => entry(&row).map(Some),
            None if self.find(tenant, run).await?.is_none() => Err(JournalError::Unknown(run)),
            None => Ok(None),
        }
    }

    async fn find(&self, tenant: &Tenant, run: RunId) -> Result<Option<RunRow>, JournalError> {
        let row = sqlx::query(include_str!("query/find_run.sql"))
            .bind(tenant.as_str())
            .bind(run.to_string())
            .fetch_optional(&self.readers)
            .await
            .map_err(JournalError::storage)?;
        Ok(row.as_ref().map(run_row).transpose()?.map(|(_, row)| row))
    }

    async fn unfinished(&self) -> Result<Vec<(Tenant, RunRow)>, JournalError> {
        let rows = sqlx::query(include_str!("query/unfinished_runs.sql"))
            .fetch_all(&self.readers)
            .await
            .map_err(JournalError::storage)?;
        rows.iter().map(run_row).collect()
    }
}

/// Why the fence did not open.
async fn refusal(transaction: &mut Transaction<'_, Sqlite>, tenant: &Tenant, run: RunId) -> JournalError {
    let row = sqlx::query(include_str!("query/find_run.sql"))
        .bind(tenant.as_str())
        .bind(run.to_string())
        .fetch_optional(&mut **transaction)
        .await;
    match row.as_ref().map(|row| row.as_ref().map(run_row)) {
        Err(error) => JournalError::storage(error.to_string()),
        Ok(None) => JournalError::Unknown(run),
        Ok(Some(Err(error))) => error,
        Ok(Some(Ok((_, row)))) if row.state != State::Running => JournalError::Ended(run),
        Ok(Some(Ok(_))) => JournalError::Conflict(run),
    }
}

fn entry(row: &SqliteRow) -> Result<Entry, JournalError> {
    let kind: &str = get(row, "kind")?;
    let body: &str = get(row, "body")?;
    let seq: Option<i64> = get(row, "seq")?;
    let event = Rendered {
        kind: Kind::find(kind).ok_or_else(|| damaged("kind", kind))?,
        seq: seq.map(natural).transpose()?,
        body: Arc::from(body),
    };
    Ok(Entry {
        offset: natural(get(row, "offset")?)?,
        event,
    })
}

fn run_row(row: &SqliteRow) -> Result<(Tenant, RunRow), JournalError> {
    let id: &str = get(row, "id")?;
    let state: &str = get(row, "state")?;
    let code: Option<String> = get(row, "code")?;
    let finished_at_ms: Option<i64> = get(row, "finished_at_ms")?;
    let finished = match finished_at_ms {
        Some(at_ms) => Some(Finish {
            code,
            at_ms: natural(at_ms)?,
        }),
        None => None,
    };
    let found = RunRow {
        id: id.parse().map_err(|_| damaged("id", id))?,
        module: get(row, "module")?,
        command: get(row, "command")?,
        state: State::find(state).ok_or_else(|| damaged("state", state))?,
        created_at_ms: natural(get(row, "created_at_ms")?)?,
        finished,
        last_offset: natural(get(row, "last_offset")?)?,
    };
    Ok((Tenant::new(get(row, "tenant")?), found))
}

fn get<'r, T>(row: &'r SqliteRow, column: &str) -> Result<T, JournalError>
where
    T: sqlx::Decode<'r, Sqlite> + sqlx::Type<Sqlite>,
{
    row.try_get(column).map_err(JournalError::storage)
}

/// SQLite counts in `i64`. Nothing of ours comes near its end except a number a client made up, and
/// that one is found nowhere.
fn integer(value: u64) -> Result<i64, JournalError> {
    i64::try_from(value).map_err(JournalError::storage)
}

fn natural(value: i64) -> Result<u64, JournalError> {
    u64::try_from(value).map_err(JournalError::storage)
}

fn damaged(column: &str, value: &str) -> JournalError {
    JournalError::storage(format!("the column {column} holds {value:?}"))
}
