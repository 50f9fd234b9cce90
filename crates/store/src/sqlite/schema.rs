//! Schema migrations: one file per step, applied in order, counted in `user_version`.

use engine::port::JournalError;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::row::failed;

const STEPS: &[&str] = &[
    include_str!("migration/0001_run.sql"),
    include_str!("migration/0002_archive.sql"),
    include_str!("migration/0003_fewer_trees.sql"),
    include_str!("migration/0004_outcome.sql"),
    include_str!("migration/0005_kind.sql"),
    include_str!("migration/0006_recoveries.sql"),
];

/// Migrates the file. A file with a newer schema is refused.
pub(super) fn migrate(connection: &Connection) -> Result<(), JournalError> {
    // Two processes may open a new file at once; the second waits and finds it migrated.
    let transaction =
        Transaction::new_unchecked(connection, TransactionBehavior::Immediate).map_err(failed)?;
    let version: i64 = transaction
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .map_err(failed)?;
    let done = usize::try_from(version).unwrap_or(usize::MAX);
    if done > STEPS.len() {
        return Err(JournalError::from_backend(format!(
            "the file has schema version {version}, but this cogn supports only {}",
            STEPS.len()
        )));
    }
    for step in STEPS.iter().skip(done) {
        transaction.execute_batch(step).map_err(failed)?;
    }
    transaction.commit().map_err(failed)
}
