//! Memory and SQLite pass the same suite; SQLite also across processes.

use std::sync::Arc;

use engine::Tenant;
use engine::port::{EncodedEvent, EventKind, Journal};
use store::limits;
use store::memory::MemoryJournal;
use store::sqlite::SqliteJournal;
use testkit::conformance::journal;

#[tokio::test]
async fn memory_passes_the_journal_suite() {
    journal::suite(|| async { Arc::new(MemoryJournal::default()) as Arc<dyn Journal> }).await;
}

#[tokio::test]
async fn sqlite_passes_the_journal_suite() {
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
async fn sqlite_retains_everything_across_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let open = || {
        let path = path.clone();
        async move { Arc::new(SqliteJournal::open(&path).await.unwrap()) as Arc<dyn Journal> }
    };
    journal::reopening(open).await;
}

#[tokio::test]
async fn newer_schema_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    SqliteJournal::open(&path).await.unwrap().close().await;
    let file = rusqlite::Connection::open(&path).unwrap();
    file.pragma_update(None, "user_version", 99).unwrap();
    drop(file);
    let error = SqliteJournal::open(&path).await.unwrap_err();
    assert!(error.to_string().contains("version 99"), "{error}");
}

#[tokio::test]
async fn wal_size_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = SqliteJournal::open(&path).await.unwrap();
    let (tenant, id) = (Tenant::local(), journal::run(1));
    journal.create(&tenant, &journal::new(id)).await.unwrap();
    let bytes = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().len();
    let event = EncodedEvent {
        kind: EventKind::Progress,
        seq: None,
        body: "x".repeat(1_000_000).into(),
    };
    // A page and its frame header.
    let longest = u64::from(limits::LOG_PAGES_MAX + limits::LOG_PAGES_MORE) * 4120;
    for after in 0..longest / 1_000_000 + 30 {
        journal
            .append(&tenant, id, after, std::slice::from_ref(&event))
            .await
            .unwrap();
        assert!(bytes("journal.db-wal") < longest, "behind {after} events");
    }
    journal.close().await;
    assert!(bytes("journal.db") > longest);
    assert!(!folder.path().join("journal.db-wal").try_exists().unwrap());
}
