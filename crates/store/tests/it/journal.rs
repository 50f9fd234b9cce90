//! Memory and SQLite, the same suite; SQLite also survives its process.

use std::sync::Arc;

use engine::port::Journal;
use store::memory::MemoryJournal;
use store::sqlite::SqliteJournal;
use testkit::conformance::journal;

#[tokio::test]
async fn memory_keeps_the_journal_contract() {
    journal::suite(|| async { Arc::new(MemoryJournal::default()) as Arc<dyn Journal> }).await;
}

#[tokio::test]
async fn sqlite_keeps_the_journal_contract() {
    let folder = tempfile::tempdir().unwrap();
    let counter = std::sync::atomic::AtomicU32::new(0);
    let open = || {
        let number = counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = folder.path().join(format!("{number}.db"));
        async move { Arc::new(SqliteJournal::open(&path).await.unwrap()) as Arc<dyn Journal> }
    };
    journal::suite(open).await;
}

#[tokio::test]
async fn sqlite_keeps_everything_across_a_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let open = || {
        let path = path.clone();
        async move { Arc::new(SqliteJournal::open(&path).await.unwrap()) as Arc<dyn Journal> }
    };
    journal::reopening(open).await;
}

#[tokio::test]
async fn a_file_from_the_future_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    SqliteJournal::open(&path).await.unwrap().close().await;
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path);
    let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
    sqlx::query("PRAGMA user_version = 99")
        .execute(&pool)
        .await
        .unwrap();
    pool.close().await;
    let error = SqliteJournal::open(&path).await.unwrap_err();
    assert!(error.to_string().contains("version 99"), "{error}");
}
