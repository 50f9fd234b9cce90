//! The statements that add rows: for runs, for their events, and for what they used. Each is taken out once for as many
//! rows as there are, and what the rows have in common is bound once. Which rows go together is not known here.

use engine::Tenant;
use engine::port::{RunEnd, JournalError, NewRun, EncodedEvent, RunState};
use rusqlite::{CachedStatement, Connection, ToSql, params};

use super::spool::Told;
use super::row::to_i64;
use super::writer::failed;

/// Runs that nobody named.
pub(super) struct InsertRuns<'c>(CachedStatement<'c>);

impl<'c> InsertRuns<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self, JournalError> {
        prepare(connection, include_str!("query/enter_run.sql")).map(Self)
    }

    /// As it began and whatever became of it. Returns whether it was new.
    pub(super) fn add(
        &mut self,
        tenant: &Tenant,
        id: &str,
        new: &NewRun,
        told: &Told<'_>,
    ) -> Result<bool, JournalError> {
        let finish = told.end.map(|end| &end.finish);
        let finished_at_ms = finish.map(|finish| to_i64(finish.at_ms)).transpose()?;
        let (created_at_ms, count) = (to_i64(new.created_at_ms)?, to_i64(told.events.len() as u64)?);
        let made = self.0.execute(params![
            tenant.as_str(),
            id,
            new.module,
            new.command,
            finish.map_or(RunState::Running, |finish| finish.state()).as_str(),
            finish.and_then(|finish| finish.code.as_deref()),
            created_at_ms,
            finished_at_ms,
            count,
            new.client,
            told.end.and_then(|end| end.review.as_deref()),
        ]);
        Ok(made.map_err(failed)? == 1)
    }
}

pub(super) struct InsertEvents<'c>(CachedStatement<'c>);

impl<'c> InsertEvents<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self, JournalError> {
        prepare(connection, include_str!("query/insert_event.sql")).map(Self)
    }

    /// Behind the one at offset `after`. Whoever calls knows that there is such a run.
    pub(super) fn add<'e>(
        &mut self,
        tenant: &str,
        id: &str,
        after: i64,
        events: impl IntoIterator<Item = &'e EncodedEvent>,
    ) -> Result<(), JournalError> {
        bind(&mut self.0, 1, tenant)?;
        bind(&mut self.0, 2, id)?;
        for (offset, event) in (after + 1..).zip(events) {
            bind(&mut self.0, 3, offset)?;
            bind(&mut self.0, 4, event.kind.as_str())?;
            bind(&mut self.0, 5, event.seq.map(to_i64).transpose()?)?;
            bind(&mut self.0, 6, &*event.body)?;
            self.0.raw_execute().map_err(failed)?;
        }
        Ok(())
    }
}

/// Whose run it is, and of what: it is accounted under both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner<'o> {
    pub(super) client: &'o str,
    pub(super) module: &'o str,
}

pub(super) struct InsertUsage<'c>(CachedStatement<'c>);

impl<'c> InsertUsage<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self, JournalError> {
        prepare(connection, include_str!("query/insert_usage.sql")).map(Self)
    }

    /// What each attempt of a run used.
    pub(super) fn add(
        &mut self,
        tenant: &str,
        id: &str,
        owner: Owner<'_>,
        end: &RunEnd,
    ) -> Result<(), JournalError> {
        let at_ms = to_i64(end.finish.at_ms)?;
        for spent in &end.usage {
            let tokens = |count: Option<u64>| count.map(to_i64).transpose();
            let (input, output) = (tokens(spent.input_tokens)?, tokens(spent.output_tokens)?);
            let estimated = tokens(spent.estimated_tokens)?;
            let added = self.0.execute(params![
                tenant,
                id,
                spent.attempt,
                owner.client,
                owner.module,
                spent.backend,
                spent.model,
                spent.outcome,
                input,
                output,
                estimated,
                at_ms,
            ]);
            added.map_err(failed)?;
        }
        Ok(())
    }
}

/// The client and the module of a run that is in the tables.
pub(super) fn owner(
    connection: &Connection,
    tenant: &str,
    id: &str,
) -> Result<(String, String), JournalError> {
    prepare(connection, include_str!("query/run_owner.sql"))?
        .query_row(params![tenant, id], |row| Ok((row.get(0)?, row.get(1)?)))
        .map_err(failed)
}

fn prepare<'c>(connection: &'c Connection, text: &str) -> Result<CachedStatement<'c>, JournalError> {
    connection.prepare_cached(text).map_err(failed)
}

fn bind(statement: &mut CachedStatement<'_>, place: usize, value: impl ToSql) -> Result<(), JournalError> {
    statement.raw_bind_parameter(place, value).map_err(failed)
}
