//! A file that becomes full: runs and calls are refused, calls that have started still end, and a server can
//! start.

use std::path::Path;
use std::time::Duration;

use engine::Tenant;
use engine::port::{Archive, EncodedEvent, EventKind, Journal, JournalError, PruneRequest, RunState};
use store::Durability;
use store::sqlite::{Options, SqliteJournal};
use testkit::conformance::journal::{new, run};
use tokio::time::sleep;

use crate::accounting::{die, good, logs, open};

const ALL_THAT_ENDED: PruneRequest = PruneRequest {
    before_ms: 100,
    bytes_max: u64::MAX,
    idempotency_since_ms: 0,
    once_short_since_ms: 0,
    usage_before_ms: 0,
    batch: 4,
};

const FULL: Options = Options {
    bytes_max: Some(200_000),
    durability: Durability::Process,
};

fn large(bytes: usize) -> EncodedEvent {
    EncodedEvent {
        kind: EventKind::Final,
        seq: None,
        body: "x".repeat(bytes).into(),
    }
}

/// A journal without any space; run 1 to 4 have ended.
async fn full(path: &Path) -> SqliteJournal {
    let journal = SqliteJournal::open_with(path, FULL).await.unwrap();
    let tenant = Tenant::local();
    for id in 1..=4 {
        journal.create(&tenant, &new(run(id))).await.unwrap();
        let event = [large(20_000)];
        journal
            .finish(&tenant, run(id), 0, &event, &good())
            .await
            .unwrap();
    }
    let (mut id, mut bytes) = (1_000, 20_000);
    while bytes > 0 {
        id += 1;
        let created = journal.create(&tenant, &new(run(id))).await.is_ok();
        if !created
            || journal
                .append(&tenant, run(id), 0, &[large(bytes)])
                .await
                .is_err()
        {
            bytes /= 2;
        }
    }
    journal
}

#[tokio::test]
async fn calls_that_started_end_when_there_is_space_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = full(&path).await;
    let tenant = Tenant::local();
    // The log is not full: it is noticed when the records of enough calls are applied.
    let mut accounts = Vec::new();
    let mut id = 10;
    let refused = loop {
        match open(&journal, run(id)).await {
            Ok(account) => accounts.push(account),
            Err(error) => break error,
        }
        id += 1;
        sleep(Duration::from_millis(1)).await;
    };
    assert!(matches!(refused, JournalError::Full), "{refused:?}");
    let last = run(id - 1);
    for account in accounts {
        account.end(good());
    }
    let unknown = journal.find(&tenant, last).await;
    assert!(matches!(unknown, Err(JournalError::Full)), "{unknown:?}");
    let run_refused = journal.append(&tenant, run(1_001), 1, &[large(20_000)]).await;
    assert!(matches!(run_refused, Err(JournalError::Full)), "{run_refused:?}");
    assert_eq!(journal.prune(&ALL_THAT_ENDED).await.unwrap().runs, 4);
    let row = journal.find(&tenant, last).await.unwrap().unwrap();
    assert_eq!(row.state, RunState::Done);
    assert_eq!(journal.attempt_usage(&tenant, last).await.unwrap().len(), 1);
    drop(open(&journal, run(id)).await.unwrap());
    journal.close().await;
    assert_eq!(logs(folder.path()), 0, "nothing is left behind");
}

#[tokio::test]
async fn server_starts_with_a_full_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let tenant = Tenant::local();
    let journal = full(&path).await;
    let mut id = 10;
    while let Ok(account) = open(&journal, run(id)).await {
        account.end(good());
        id += 1;
        sleep(Duration::from_millis(1)).await;
    }
    let last = run(id - 1);
    journal.close().await;
    drop(journal);
    assert!(logs(folder.path()) > 0, "they are not in the tables");

    let journal = SqliteJournal::open_with(&path, FULL).await.unwrap();
    journal.unfinished().await.unwrap();
    let refused = open(&journal, run(9)).await;
    assert!(matches!(refused, Err(JournalError::Full)), "{refused:?}");
    assert_eq!(journal.prune(&ALL_THAT_ENDED).await.unwrap().runs, 4);
    // It is retried, then new calls are accepted.
    let account = loop {
        match open(&journal, run(9)).await {
            Ok(account) => break account,
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    };
    account.end(good());
    let row = journal.find(&tenant, last).await.unwrap().unwrap();
    assert_eq!(row.state, RunState::Done);
    journal.close().await;
    assert_eq!(logs(folder.path()), 0, "nothing is left behind");
}

#[tokio::test]
async fn record_of_a_pruned_call_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let left = tempfile::tempdir().unwrap();
    let elsewhere = left.path().join("journal.db");
    std::thread::scope(|scope| scope.spawn(|| die(&elsewhere)).join().unwrap());
    let log = std::fs::read_dir(left.path())
        .unwrap()
        .map(|entry| entry.unwrap())
        .find(|entry| entry.file_name().to_str().unwrap().contains("-accounts-"))
        .unwrap()
        .path();
    let journal = SqliteJournal::open(&path).await.unwrap();
    for name in ["journal.db-accounts-0-0", "journal.db-accounts-0-1"] {
        std::fs::copy(&log, folder.path().join(name)).unwrap();
        journal.unfinished().await.unwrap();
        assert_eq!(journal.prune(&ALL_THAT_ENDED).await.unwrap().runs, 1);
    }
    assert_eq!(logs(folder.path()), 0, "both were applied");
    let usage = journal.attempt_usage(&Tenant::local(), run(1)).await.unwrap();
    assert_eq!(usage.len(), 1);
}
