//! Memory and SQLite, the same suite; SQLite also survives its process.

use std::sync::Arc;

use engine::Tenant;
use engine::port::{Journal, EventKind, NewRun, EncodedEvent};
use futures::FutureExt;
use ir::RunId;
use store::limits;
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

/// Nobody will ever run it, so it must not stand there as a run in progress.
#[tokio::test]
async fn a_run_whose_caller_left_before_it_was_there_is_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(&folder.path().join("journal.db"))
        .await
        .unwrap();
    let tenant = Tenant::local();
    let new = |number| NewRun {
        id: RunId::from_parts(number, 0),
        module: String::from("m"),
        command: String::from("{}"),
        created_at_ms: number,
        client: String::new(),
        once: None,
    };
    let mut made = Vec::new();
    for number in 1..=50 {
        let run = new(number);
        // Asks, and does not wait for an answer.
        let created = journal.create(&tenant, &run).now_or_never();
        made.extend(created.is_some().then_some(run.id));
    }
    // Waits behind all the others.
    let last = new(51);
    journal.create(&tenant, &last).await.unwrap();
    made.push(last.id);
    assert!(made.len() < 51, "nobody left early");
    let unfinished = journal.unfinished().await.unwrap();
    let unfinished: Vec<RunId> = unfinished.into_iter().map(|(_, row)| row.id).collect();
    assert_eq!(unfinished, made);
}

#[tokio::test]
async fn the_write_ahead_log_stays_short_however_much_is_written() {
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
    // A page and what SQLite notes of it.
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
