//! The archive in memory and in SQLite; a full file; files of older versions.

use std::sync::Arc;

use engine::Tenant;
use engine::port::{
    Archive, EncodedEvent, EventKind, Journal, JournalError, NewRun, PruneRequest, RunEnd, RunFilter,
    RunKind, RunState,
};
use ir::RunId;
use rusqlite::params;
use store::memory::MemoryJournal;
use store::sqlite::{Options, SqliteJournal};
use testkit::conformance::archive;

#[tokio::test]
async fn memory_passes_the_archive_suite() {
    archive::suite(|| async {
        let journal = Arc::new(MemoryJournal::default());
        (journal.clone() as Arc<dyn Journal>, journal as Arc<dyn Archive>)
    })
    .await;
}

#[tokio::test]
async fn sqlite_passes_the_archive_suite() {
    let folder = tempfile::tempdir().unwrap();
    let counter = std::sync::atomic::AtomicU32::new(0);
    let open = || {
        let number = counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = folder.path().join(format!("{number}.db"));
        async move {
            let journal = Arc::new(SqliteJournal::open(&path).await.unwrap());
            (journal.clone() as Arc<dyn Journal>, journal as Arc<dyn Archive>)
        }
    };
    archive::suite(open).await;
}

fn new(number: u128) -> NewRun {
    NewRun {
        id: RunId::from_parts(1, number),
        kind: RunKind::Module(String::from("m")),
        command: String::from("{}"),
        created_at_ms: 1,
        client: String::from("c"),
        once: None,
    }
}

fn event(bytes: usize) -> EncodedEvent {
    EncodedEvent {
        kind: EventKind::Progress,
        seq: None,
        body: Arc::from("x".repeat(bytes)),
    }
}

#[tokio::test]
async fn full_file_refuses_writes_until_pruned() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let bytes_max = Some(1_000_000);
    let journal = SqliteJournal::open_with(
        &path,
        Options {
            bytes_max,
            ..Options::default()
        },
    )
    .await
    .unwrap();
    let tenant = Tenant::local();
    let mut written = Vec::new();
    let refused = loop {
        let number = 1 + written.len() as u128;
        let run = RunId::from_parts(1, number);
        let end = RunEnd::new(None, 1, Vec::new());
        let result = match journal.create(&tenant, &new(number)).await {
            Ok(()) => journal.finish(&tenant, run, 0, &[event(50_000)], &end).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(()) => written.push(run),
            Err(error) => break error,
        }
        assert!(written.len() < 100, "it never became full");
    };
    assert!(matches!(refused, JournalError::Full), "{refused:?}");
    assert!(written.len() > 5);
    for run in &written {
        assert_eq!(journal.read(&tenant, *run, 0, 10).await.unwrap().len(), 1);
    }
    let retention = PruneRequest {
        before_ms: 2,
        bytes_max: u64::MAX,
        idempotency_since_ms: 0,
        once_short_since_ms: 0,
        usage_before_ms: 0,
        batch: 3,
    };
    assert_eq!(journal.prune(&retention).await.unwrap().runs, 3);
    journal.create(&tenant, &new(1_000)).await.unwrap();
    let run = RunId::from_parts(1, 1_000);
    journal.append(&tenant, run, 0, &[event(50_000)]).await.unwrap();
}

#[tokio::test]
async fn migrates_from_schema_1() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let run = RunId::from_parts(1, 1);
    {
        let file = rusqlite::Connection::open(&path).unwrap();
        file.execute_batch(include_str!("../../src/sqlite/migration/0001_run.sql"))
            .unwrap();
        let insert = "INSERT INTO run (tenant, id, module, command, state, created_at_ms) VALUES ('local', ?1, 'm', '{}', 'running', 3)";
        file.execute(insert, [run.to_string()]).unwrap();
    }
    let journal = SqliteJournal::open(&path).await.unwrap();
    let tenant = Tenant::local();
    let row = journal.find(&tenant, run).await.unwrap().unwrap();
    assert_eq!(
        (row.state, row.client.as_str(), row.review),
        (RunState::Running, "", None)
    );
    let end = RunEnd::new(None, 9, Vec::new());
    journal.finish(&tenant, run, 0, &[event(1)], &end).await.unwrap();
    let filter = RunFilter {
        state: None,
        before: None,
        limit: 9,
    };
    assert_eq!(journal.list(&tenant, &filter).await.unwrap().len(), 1);
    assert_eq!(journal.attempt_usage(&tenant, run).await.unwrap().len(), 1);
}

/// A file of schema 2: two tenants, an unfinished run, and chunks between other events.
fn second_schema(path: &std::path::Path) {
    let file = rusqlite::Connection::open(path).unwrap();
    for step in [
        include_str!("../../src/sqlite/migration/0001_run.sql"),
        include_str!("../../src/sqlite/migration/0002_archive.sql"),
    ] {
        file.execute_batch(step).unwrap();
    }
    for (tenant, number, state, created) in [
        ("local", 1, "running", 7),
        ("local", 2, "done", 1),
        ("other", 3, "running", 5),
        ("third", 4, "failed", 2),
    ] {
        let insert = "INSERT INTO run (tenant, id, module, command, state, created_at_ms, client, last_offset) VALUES (?1, ?2, 'm', '{}', ?3, ?4, 'c', 4)";
        file.execute(
            insert,
            params![tenant, RunId::from_parts(1, number).to_string(), state, created],
        )
        .unwrap();
    }
    for (offset, kind, seq) in [
        (1, "meta", None),
        (2, "chunk", Some(1)),
        (3, "progress", None),
        (4, "chunk", Some(2)),
    ] {
        let insert = "INSERT INTO event (tenant, run, \"offset\", kind, seq, body) VALUES ('local', ?1, ?2, ?3, ?4, ?2)";
        file.execute(
            insert,
            params![RunId::from_parts(1, 1).to_string(), offset, kind, seq],
        )
        .unwrap();
    }
    let insert = "INSERT INTO usage (tenant, run, attempt, client, module, outcome, at_ms) VALUES ('local', ?1, 1, 'c', 'm', 'won', 1)";
    file.execute(insert, [RunId::from_parts(1, 2).to_string()])
        .unwrap();
    let relayed = RunId::from_parts(1, 5).to_string();
    for statement in [
        "INSERT INTO run (tenant, id, module, command, state, created_at_ms, last_offset) VALUES ('local', ?1, '', '{}', 'failed', 9, 2)",
        "INSERT INTO event (tenant, run, \"offset\", kind, seq, body) VALUES ('local', ?1, 1, 'chunk', 1, 'data: 1'), ('local', ?1, 2, 'error', NULL, '')",
    ] {
        file.execute(statement, [&relayed]).unwrap();
    }
}

#[tokio::test]
async fn migrates_from_schema_2() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    second_schema(&path);
    let (local, run) = (Tenant::local(), RunId::from_parts(1, 1));
    for _ in 0..2 {
        let journal = SqliteJournal::open(&path).await.unwrap();
        let unfinished = journal.unfinished().await.unwrap();
        let left = unfinished.iter().map(|(tenant, row)| (tenant.as_str(), row.id));
        assert_eq!(
            left.collect::<Vec<_>>(),
            [("other", RunId::from_parts(1, 3)), ("local", run)]
        );
        for (seq, offset) in [(1, Some(2)), (2, Some(4)), (3, None), (4, None)] {
            let found = journal.find_chunk(&local, run, seq).await.unwrap();
            assert_eq!(found.map(|entry| entry.offset), offset);
        }
        assert_eq!(journal.read(&local, run, 0, 9).await.unwrap().len(), 4);
        let row = journal.find(&local, run).await.unwrap().unwrap();
        assert_eq!(row.kind, RunKind::Module(String::from("m")));
        let relayed = RunId::from_parts(1, 5);
        let row = journal.find(&local, relayed).await.unwrap().unwrap();
        assert_eq!(row.kind, RunKind::Relay);
        let frames = journal.read(&local, relayed, 0, 9).await.unwrap();
        let kinds = frames.iter().map(|entry| entry.event.kind);
        assert_eq!(
            kinds.collect::<Vec<_>>(),
            [EventKind::Chunk, EventKind::Interrupted]
        );
        journal.close().await;
    }
    let journal = SqliteJournal::open(&path).await.unwrap();
    let attempts = journal
        .attempt_usage(&local, RunId::from_parts(1, 2))
        .await
        .unwrap();
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0].outcome, "succeeded");
    let end = RunEnd::new(None, 9, Vec::new());
    journal.finish(&local, run, 4, &[event(1)], &end).await.unwrap();
    assert_eq!(journal.unfinished().await.unwrap().len(), 1);
    // Its events are deleted with it.
    let retention = PruneRequest {
        before_ms: 10,
        bytes_max: u64::MAX,
        idempotency_since_ms: 0,
        once_short_since_ms: 0,
        usage_before_ms: 0,
        batch: 3,
    };
    assert_eq!(journal.prune(&retention).await.unwrap().runs, 1);
    journal.create(&local, &new(1)).await.unwrap();
    assert!(journal.read(&local, run, 0, 9).await.unwrap().is_empty());
}
