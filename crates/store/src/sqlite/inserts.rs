//! Statements that insert events and usage. A statement is taken from the cache once for all rows, and
//! common values are bound once. Which rows belong together is decided by the caller.

use engine::port::{EncodedEvent, JournalError, RunEnd};
use rusqlite::{CachedStatement, Connection, ToSql, params};

use super::row::{failed, to_i64};

pub(super) struct InsertEvents<'c>(CachedStatement<'c>);

impl<'c> InsertEvents<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self, JournalError> {
        prepare(connection, include_str!("query/insert_event.sql")).map(Self)
    }

    /// Inserts events after offset `after`. The caller ensures that the run exists.
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

/// The client and module of a run; usage is recorded under both.
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

    /// Inserts the usage of each attempt of a run.
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

/// The client and the module of a run in the tables.
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
