//! Queries on runs in SQLite.

use async_trait::async_trait;
use engine::Tenant;
use engine::port::{
    Archive, AttemptUsage, JournalError, PruneRequest, PruneResult, ReviewDecision, RunFilter, RunStatus,
    RunSummary, UsageFilter, UsageRow,
};
use ir::RunId;
use rusqlite::{Connection, Row, params};

use super::journal::SqliteJournal;
use super::row::{corrupt, count, execute, failed, get, run_row, select, select_one, to_i64, to_u64};
use crate::limits;

/// Sorts after every id.
const NEWEST: &str = "~";

#[async_trait]
impl Archive for SqliteJournal {
    async fn list(&self, tenant: &Tenant, filter: &RunFilter) -> Result<Vec<RunSummary>, JournalError> {
        let statement = match filter.state {
            None => include_str!("query/list_runs.sql"),
            Some(RunStatus::NeedsReview) => include_str!("query/list_runs_in_review.sql"),
            Some(RunStatus::Running | RunStatus::Done | RunStatus::Failed) => {
                include_str!("query/list_runs_in_state.sql")
            }
        };
        self.accounting.settle().await?;
        let tenant = tenant.clone();
        let before = filter
            .before
            .map_or_else(|| String::from(NEWEST), |run| run.to_string());
        let limit = to_i64(filter.limit as u64)?;
        let state = filter.state;
        let convert = |row: &Row<'_>| run_row(row).map(|(_, row)| RunSummary::from(row));
        let query = move |connection: &Connection| match state {
            Some(state @ (RunStatus::Running | RunStatus::Done | RunStatus::Failed)) => {
                let values = params![tenant.as_str(), before, limit, state.as_str()];
                select(connection, statement, values, convert)
            }
            None | Some(RunStatus::NeedsReview) => select(
                connection,
                statement,
                params![tenant.as_str(), before, limit],
                convert,
            ),
        };
        self.readers.read(query).await
    }

    async fn review(
        &self,
        tenant: &Tenant,
        run: RunId,
        verdict: &ReviewDecision,
    ) -> Result<(), JournalError> {
        let (of, verdict, at_ms) = (tenant.clone(), verdict.clone(), to_i64(verdict.at_ms)?);
        let review = move |connection: &Connection| {
            let values = params![
                of.as_str(),
                run.to_string(),
                verdict.decision.as_str(),
                verdict.by,
                verdict.comment,
                verdict.data,
                at_ms,
            ];
            execute(connection, include_str!("query/review_run.sql"), values)
        };
        if self.writer.run_synced(review).await? > 0 {
            return Ok(());
        }
        match self.row(tenant, run).await? {
            None => Err(JournalError::Unknown(run)),
            Some(_) => Err(JournalError::NotInReview(run)),
        }
    }

    async fn attempt_usage(&self, tenant: &Tenant, run: RunId) -> Result<Vec<AttemptUsage>, JournalError> {
        self.accounting.settle().await?;
        let of = tenant.clone();
        let query = move |connection: &Connection| {
            let values = params![of.as_str(), run.to_string()];
            select(connection, include_str!("query/read_usage.sql"), values, spent)
        };
        self.readers.read(query).await
    }

    async fn usage(
        &self,
        tenant: Option<&Tenant>,
        filter: &UsageFilter,
    ) -> Result<Vec<UsageRow>, JournalError> {
        self.accounting.settle().await?;
        let (tenant, filter) = (tenant.cloned(), filter.clone());
        let query = move |connection: &Connection| {
            let values = params![
                tenant.as_ref().map(Tenant::as_str),
                bound(filter.since_ms, 0),
                bound(filter.until_ms, i64::MAX),
                filter.by_client,
                filter.by_module,
                filter.by_model,
                filter.by_day,
                to_i64(limits::USAGE_LINES_MAX as u64)?,
            ];
            select(
                connection,
                include_str!("query/sum_usage.sql"),
                values,
                usage_line,
            )
        };
        self.readers.read(query).await
    }

    async fn newest_run_ms(&self) -> Result<Option<u64>, JournalError> {
        let query = |connection: &Connection| {
            let newest = include_str!("query/newest_run.sql");
            select_one(connection, newest, [], |row| get::<Option<String>>(row, "id"))
        };
        let newest = self.readers.read(query).await?.flatten();
        let newest = newest.map(|id| id.parse::<RunId>().map_err(|_| corrupt("id", &id)));
        Ok(newest.transpose()?.map(RunId::at_ms))
    }

    async fn prune(&self, retention: &PruneRequest) -> Result<PruneResult, JournalError> {
        let retention = *retention;
        self.writer
            .run(move |connection| prune(connection, retention))
            .await
    }
}

fn prune(connection: &Connection, retention: PruneRequest) -> Result<PruneResult, JournalError> {
    let used = select_one(connection, include_str!("query/used_bytes.sql"), [], |row| {
        to_u64(row.get(0).map_err(failed)?)
    })?;
    let too_much = used.is_some_and(|used| used > retention.bytes_max);
    let (before_ms, once_since_ms) = match too_much {
        true => (u64::MAX, retention.once_short_since_ms),
        false => (retention.before_ms, retention.idempotency_since_ms),
    };
    let batch = to_i64(retention.batch as u64)?;
    let (before, once_since) = (
        bound(Some(before_ms), i64::MAX),
        bound(Some(once_since_ms), i64::MAX),
    );
    let values = params![before, once_since, batch];
    // The writer does not enforce foreign keys: the events of the same runs are deleted first.
    execute(connection, include_str!("query/prune_events.sql"), values)?;
    let runs = execute(connection, include_str!("query/prune_runs.sql"), values)?;
    let usage_before = bound(Some(retention.usage_before_ms), i64::MAX);
    let records = execute(
        connection,
        include_str!("query/prune_usage.sql"),
        params![usage_before, batch],
    )?;
    Ok(PruneResult {
        runs,
        more: runs >= retention.batch || records >= retention.batch,
    })
}

/// A timestamp from a client may exceed the range of SQLite integers; no other value does.
fn bound(at_ms: Option<u64>, otherwise: i64) -> i64 {
    at_ms.map_or(otherwise, |at_ms| i64::try_from(at_ms).unwrap_or(i64::MAX))
}

fn spent(row: &Row<'_>) -> Result<AttemptUsage, JournalError> {
    let attempt: i64 = get(row, "attempt")?;
    Ok(AttemptUsage {
        attempt: u32::try_from(attempt).map_err(JournalError::from_backend)?,
        backend: get(row, "backend")?,
        model: get(row, "model")?,
        outcome: get(row, "outcome")?,
        input_tokens: count(row, "input_tokens")?,
        output_tokens: count(row, "output_tokens")?,
        estimated_tokens: count(row, "estimated_tokens")?,
    })
}

fn usage_line(row: &Row<'_>) -> Result<UsageRow, JournalError> {
    Ok(UsageRow {
        client: get(row, "client")?,
        module: get(row, "module")?,
        model: get(row, "model")?,
        day: count(row, "day")?,
        runs: count(row, "runs")?.unwrap_or_default(),
        attempts: count(row, "attempts")?.unwrap_or_default(),
        input_tokens: count(row, "input_tokens")?,
        output_tokens: count(row, "output_tokens")?,
        estimated_tokens: count(row, "estimated_tokens")?,
        unknown: count(row, "unknown")?.unwrap_or_default(),
    })
}
