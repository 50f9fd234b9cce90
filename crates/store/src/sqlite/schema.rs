//! Schema migrations: one file per step, applied in order, counted in `user_version`.

use engine::port::JournalError;
use sqlx::SqlitePool;

const STEPS: &[&str] = &[
    include_str!("migration/0001_run.sql"),
    include_str!("migration/0002_archive.sql"),
    include_str!("migration/0003_fewer_trees.sql"),
    include_str!("migration/0004_outcome.sql"),
    include_str!("migration/0005_kind.sql"),
];

/// Migrates the file. A file with a newer schema is refused.
pub(super) async fn migrate(pool: &SqlitePool) -> Result<(), JournalError> {
    // Two processes may open a new file at once; the second waits and finds it migrated.
    let mut transaction = pool
        .begin_with("BEGIN IMMEDIATE")
        .await
        .map_err(JournalError::from_backend)?;
    let version: i64 = sqlx::query_scalar("PRAGMA user_version")
        .fetch_one(&mut *transaction)
        .await
        .map_err(JournalError::from_backend)?;
    let done = usize::try_from(version).unwrap_or(usize::MAX);
    if done > STEPS.len() {
        return Err(JournalError::from_backend(format!(
            "the file has schema version {version}, but this cogn supports only {}",
            STEPS.len()
        )));
    }
    for step in STEPS.iter().skip(done).copied() {
        sqlx::raw_sql(step)
            .execute(&mut *transaction)
            .await
            .map_err(JournalError::from_backend)?;
    }
    transaction.commit().await.map_err(JournalError::from_backend)
}
