//! The journal on SQLite.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use engine::Tenant;
use engine::port::{End, Entry, Journal, JournalError, Kind, NewRun, Once, Rendered, RunRow, Spent, State};
use ir::RunId;
use sqlx::sqlite::SqliteRow;
use sqlx::{Sqlite, Transaction};

use super::database::{Database, Options};
use super::keys::SqliteKeys;
use super::row::{damaged, failed, get, integer, natural, run_row};

#[derive(Debug)]
pub struct SqliteJournal {
    pub(super) database: Database,
}

impl SqliteJournal {
    /// Opens the file, and makes it where there is none.
    pub async fn open(path: &Path) -> Result<Self, JournalError> {
        Self::open_with(path, Options::default()).await
    }

    pub async fn open_with(path: &Path, options: Options) -> Result<Self, JournalError> {
        let database = Database::open(path, options).await?;
        Ok(Self { database })
    }

    /// The keys that are kept in the same file.
    pub fn keys(&self) -> SqliteKeys {
        SqliteKeys {
            database: self.database.clone(),
        }
    }

    /// Closes every connection; what was written stays.
    pub async fn close(&self) {
        self.database.close().await;
    }

    pub(super) async fn row(&self, tenant: &Tenant, run: RunId) -> Result<Option<RunRow>, JournalError> {
        let row = sqlx::query(include_str!("query/find_run.sql"))
            .bind(tenant.as_str())
            .bind(run.to_string())
            .fetch_optional(&self.database.readers)
            .await
            .map_err(failed)?;
        Ok(row.as_ref().map(run_row).transpose()?.map(|(_, row)| row))
    }

    async fn write(
        &self,
        tenant: &Tenant,
        run: RunId,
        after: u64,
        events: &[Rendered],
        end: Option<&End>,
    ) -> Result<(), JournalError> {
        let id = run.to_string();
        let mut transaction = self.database.writer.begin().await.map_err(failed)?;
        let moved = sqlx::query(include_str!("query/advance_run.sql"))
            .bind(tenant.as_str())
            .bind(&id)
            .bind(integer(after)?)
            .bind(integer(events.len() as u64)?)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
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
                .map_err(failed)?;
        }
        if let Some(end) = end {
            close(&mut transaction, tenant, &id, end).await?;
        }
        transaction.commit().await.map_err(failed)
    }
}

#[async_trait]
impl Journal for SqliteJournal {
    async fn create(&self, tenant: &Tenant, run: &NewRun) -> Result<(), JournalError> {
        let mut transaction = self.database.writer.begin().await.map_err(failed)?;
        if let Some(once) = &run.once {
            take_name(&mut transaction, tenant, &run.client, once).await?;
        }
        let made = sqlx::query(include_str!("query/create_run.sql"))
            .bind(tenant.as_str())
            .bind(run.id.to_string())
            .bind(&run.module)
            .bind(&run.command)
            .bind(integer(run.created_at_ms)?)
            .bind(&run.client)
            .bind(run.once.as_ref().map(|once| &once.key))
            .bind(run.once.as_ref().map(|once| &once.fingerprint))
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
        if made.rows_affected() == 0 {
            return Err(JournalError::Exists(run.id));
        }
        transaction.commit().await.map_err(failed)
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
        end: &End,
    ) -> Result<(), JournalError> {
        self.write(tenant, run, after, events, Some(end)).await
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
            .fetch_all(&self.database.readers)
            .await
            .map_err(failed)?;
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
            .fetch_optional(&self.database.readers)
            .await
            .map_err(failed)?;
        match row {
            Some(row) => entry(&row).map(Some),
            None if self.find(tenant, run).await?.is_none() => Err(JournalError::Unknown(run)),
            None => Ok(None),
        }
    }

    async fn find(&self, tenant: &Tenant, run: RunId) -> Result<Option<RunRow>, JournalError> {
        self.row(tenant, run).await
    }

    async fn unfinished(&self) -> Result<Vec<(Tenant, RunRow)>, JournalError> {
        let rows = sqlx::query(include_str!("query/unfinished_runs.sql"))
            .fetch_all(&self.database.readers)
            .await
            .map_err(failed)?;
        rows.iter().map(run_row).collect()
    }
}

/// Fails if the name is taken by a run that still holds it.
async fn take_name(
    transaction: &mut Transaction<'_, Sqlite>,
    tenant: &Tenant,
    client: &str,
    once: &Once,
) -> Result<(), JournalError> {
    sqlx::query(include_str!("query/release_once.sql"))
        .bind(tenant.as_str())
        .bind(client)
        .bind(&once.key)
        .bind(integer(once.since_ms)?)
        .execute(&mut **transaction)
        .await
        .map_err(failed)?;
    let holder = sqlx::query(include_str!("query/find_once.sql"))
        .bind(tenant.as_str())
        .bind(client)
        .bind(&once.key)
        .fetch_optional(&mut **transaction)
        .await
        .map_err(failed)?;
    let Some(holder) = holder else { return Ok(()) };
    let id: &str = get(&holder, "id")?;
    let fingerprint: Option<&str> = get(&holder, "once_fingerprint")?;
    Err(JournalError::Repeated {
        run: id.parse().map_err(|_| damaged("id", id))?,
        same_request: fingerprint == Some(&once.fingerprint),
    })
}

/// Closes the run and accounts for it.
async fn close(
    transaction: &mut Transaction<'_, Sqlite>,
    tenant: &Tenant,
    id: &str,
    end: &End,
) -> Result<(), JournalError> {
    sqlx::query(include_str!("query/finish_run.sql"))
        .bind(tenant.as_str())
        .bind(id)
        .bind(end.finish.state().as_str())
        .bind(end.finish.code.as_deref())
        .bind(integer(end.finish.at_ms)?)
        .bind(end.review.as_deref())
        .execute(&mut **transaction)
        .await
        .map_err(failed)?;
    let nothing_known = [Spent::unknown()];
    let spent = if end.spent.is_empty() {
        &nothing_known[..]
    } else {
        &end.spent
    };
    for spent in spent {
        sqlx::query(include_str!("query/insert_usage.sql"))
            .bind(tenant.as_str())
            .bind(id)
            .bind(i64::from(spent.attempt))
            .bind(spent.backend.as_deref())
            .bind(spent.model.as_deref())
            .bind(&spent.outcome)
            .bind(spent.input_tokens.map(integer).transpose()?)
            .bind(spent.output_tokens.map(integer).transpose()?)
            .bind(spent.estimated_tokens.map(integer).transpose()?)
            .bind(integer(end.finish.at_ms)?)
            .execute(&mut **transaction)
            .await
            .map_err(failed)?;
    }
    Ok(())
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
