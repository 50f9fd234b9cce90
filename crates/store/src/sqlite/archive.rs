//! Queries on runs in SQLite.

use async_trait::async_trait;
use engine::Tenant;
use engine::port::{
    Archive, AttemptUsage, JournalError, PruneRequest, PruneResult, ReviewDecision, RunFilter, RunStatus,
    RunSummary, UsageFilter, UsageRow,
};
use ir::RunId;
use sqlx::sqlite::SqliteRow;

use super::journal::SqliteJournal;
use super::row::{count, get, map_error, run_row, to_i64, to_u64};
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
        self.calls.settle().await?;
        let before = filter.before.map(|run| run.to_string());
        let mut query = sqlx::query(statement)
            .bind(tenant.as_str())
            .bind(before.as_deref().unwrap_or(NEWEST))
            .bind(to_i64(filter.limit as u64)?);
        if let Some(state @ (RunStatus::Running | RunStatus::Done | RunStatus::Failed)) = filter.state {
            query = query.bind(state.as_str());
        }
        let rows = query.fetch_all(&self.database.readers).await.map_err(map_error)?;
        rows.iter()
            .map(|row| run_row(row).map(|(_, row)| RunSummary::from(row)))
            .collect()
    }

    async fn review(
        &self,
        tenant: &Tenant,
        run: RunId,
        verdict: &ReviewDecision,
    ) -> Result<(), JournalError> {
        let written = sqlx::query(include_str!("query/review_run.sql"))
            .bind(tenant.as_str())
            .bind(run.to_string())
            .bind(verdict.decision.as_str())
            .bind(&verdict.by)
            .bind(verdict.comment.as_deref())
            .bind(verdict.data.as_deref())
            .bind(to_i64(verdict.at_ms)?)
            .execute(&self.database.writer)
            .await
            .map_err(map_error)?;
        if written.rows_affected() > 0 {
            return Ok(());
        }
        match self.row(tenant, run).await? {
            None => Err(JournalError::Unknown(run)),
            Some(_) => Err(JournalError::NotInReview(run)),
        }
    }

    async fn attempt_usage(&self, tenant: &Tenant, run: RunId) -> Result<Vec<AttemptUsage>, JournalError> {
        let settled = self.calls.settle().await;
        let rows = sqlx::query(include_str!("query/read_usage.sql"))
            .bind(tenant.as_str())
            .bind(run.to_string())
            .fetch_all(&self.database.readers)
            .await
            .map_err(map_error)?;
        match settled {
            // Usage that is not in the tables yet is read from the spool.
            Err(error) if rows.is_empty() => {
                let held = self.calls.held(tenant, run);
                held.end.map(|end| end.usage).ok_or(error)
            }
            _ => rows.iter().map(spent).collect(),
        }
    }

    async fn usage(
        &self,
        tenant: Option<&Tenant>,
        filter: &UsageFilter,
    ) -> Result<Vec<UsageRow>, JournalError> {
        self.calls.settle().await?;
        let rows = sqlx::query(include_str!("query/sum_usage.sql"))
            .bind(tenant.map(Tenant::as_str))
            .bind(bound(filter.since_ms, 0))
            .bind(bound(filter.until_ms, i64::MAX))
            .bind(filter.by_client)
            .bind(filter.by_module)
            .bind(filter.by_model)
            .bind(filter.by_day)
            .bind(to_i64(limits::USAGE_LINES_MAX as u64)?)
            .fetch_all(&self.database.readers)
            .await
            .map_err(map_error)?;
        rows.iter().map(usage_line).collect()
    }

    async fn prune(&self, retention: &PruneRequest) -> Result<PruneResult, JournalError> {
        let used: i64 = sqlx::query_scalar(include_str!("query/used_bytes.sql"))
            .fetch_one(&self.database.writer)
            .await
            .map_err(map_error)?;
        let too_much = to_u64(used)? > retention.bytes_max;
        let (before_ms, once_since_ms) = match too_much {
            true => (u64::MAX, retention.once_short_since_ms),
            false => (retention.before_ms, retention.idempotency_since_ms),
        };
        let batch = to_i64(retention.batch as u64)?;
        let gone = sqlx::query(include_str!("query/prune_runs.sql"))
            .bind(bound(Some(before_ms), i64::MAX))
            .bind(bound(Some(once_since_ms), i64::MAX))
            .bind(batch)
            .execute(&self.database.writer)
            .await
            .map_err(map_error)?;
        let forgotten = sqlx::query(include_str!("query/prune_usage.sql"))
            .bind(bound(Some(retention.usage_before_ms), i64::MAX))
            .bind(batch)
            .execute(&self.database.writer)
            .await
            .map_err(map_error)?;
        let runs = usize::try_from(gone.rows_affected()).unwrap_or(usize::MAX);
        let records = usize::try_from(forgotten.rows_affected()).unwrap_or(usize::MAX);
        Ok(PruneResult {
            runs,
            more: runs >= retention.batch || records >= retention.batch,
        })
    }
}

/// A timestamp from a client may exceed the range of SQLite integers; no other value does.
fn bound(at_ms: Option<u64>, otherwise: i64) -> i64 {
    at_ms.map_or(otherwise, |at_ms| i64::try_from(at_ms).unwrap_or(i64::MAX))
}

fn spent(row: &SqliteRow) -> Result<AttemptUsage, JournalError> {
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

fn usage_line(row: &SqliteRow) -> Result<UsageRow, JournalError> {
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
