//! Rows of unfinished runs that cannot be read: they are moved to a table of their own, with the reason, so that
//! a server can start. Their events stay until they are pruned.

use engine::port::JournalError;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Row, ToSql, params};

use super::row::{execute, failed};

/// The key of a damaged row, as stored: it may be the damaged part.
#[derive(Debug)]
pub(super) struct DamagedRow {
    tenant: RawText,
    id: RawText,
    reason: String,
}

/// The bytes of a text that need not be UTF-8.
#[derive(Debug)]
struct RawText(Vec<u8>);

impl ToSql for RawText {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(&self.0)))
    }
}

impl DamagedRow {
    pub(super) fn of(row: &Row<'_>, reason: &JournalError) -> Result<Self, JournalError> {
        let raw = |column: &str| {
            let value = row.get_ref(column).map_err(failed)?;
            let bytes = value.as_bytes().map_err(JournalError::from_backend)?;
            Ok::<_, JournalError>(RawText(bytes.to_vec()))
        };
        Ok(Self {
            tenant: raw("tenant")?,
            id: raw("id")?,
            reason: reason.to_string(),
        })
    }

    /// Moves the row. Called in a transaction.
    pub(super) fn quarantine(&self, connection: &Connection) -> Result<(), JournalError> {
        let values = params![self.tenant, self.id, self.reason];
        execute(connection, include_str!("query/quarantine_run.sql"), values)?;
        let key = params![self.tenant, self.id];
        execute(connection, include_str!("query/remove_run.sql"), key)?;
        Ok(())
    }

    pub(super) fn id(&self) -> String {
        String::from_utf8_lossy(&self.id.0).into_owned()
    }

    pub(super) fn reason(&self) -> &str {
        &self.reason
    }
}
