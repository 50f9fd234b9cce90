//! The accounting log of relayed calls in SQLite: its records survive a killed process, and count once.

use std::path::Path;

use engine::Tenant;
use engine::port::{
    Account, Archive, AttemptUsage, Journal, JournalError, NewRun, RunEnd, RunKind, RunState, UsageFilter,
};
use ir::RunId;
use store::sqlite::{SqliteJournal, quarantined};
use testkit::conformance::journal::{new, run};

/// The end of a call with usage.
pub(crate) fn good() -> RunEnd {
    let spent = AttemptUsage {
        attempt: 1,
        outcome: String::from("succeeded"),
        input_tokens: Some(5),
        output_tokens: Some(7),
        ..AttemptUsage::default()
    };
    RunEnd::new(None, 9, vec![spent])
}

pub(crate) async fn open(journal: &SqliteJournal, run: RunId) -> Result<Account, JournalError> {
    let call = NewRun {
        kind: RunKind::Relay,
        ..new(run)
    };
    let (account, started) = journal.open_account(&Tenant::local(), &call)?;
    started.await.map(|()| account)
}

/// A killed process with a call that ended and a call in progress: nothing is applied before it is
/// gone.
pub(crate) fn die(path: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let journal = runtime.block_on(SqliteJournal::open(path)).unwrap();
    runtime.block_on(async {
        open(&journal, run(1)).await.unwrap().end(good());
        // Its start is written after the end of the other.
        drop(open(&journal, run(2)).await.unwrap());
    });
    drop(journal);
    // The lock of the log is released when its thread has ended.
    runtime.block_on(async { tokio::time::sleep(std::time::Duration::from_millis(50)).await });
}

pub(crate) fn logs(folder: &Path) -> usize {
    let names = std::fs::read_dir(folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains("-accounts-")).count()
}

#[tokio::test]
async fn log_of_a_killed_process_is_applied_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    std::thread::scope(|scope| scope.spawn(|| die(&path)).join().unwrap());
    assert!(logs(folder.path()) > 0);
    // A record was being written when the process was killed, and a file is empty.
    let torn = folder.path().join("journal.db-accounts-0-0");
    std::fs::write(&torn, "{\"record\":\"start\",\"tenant\":\"local\",\"run\":").unwrap();
    std::fs::write(folder.path().join("journal.db-accounts-0-1"), "").unwrap();
    let journal = SqliteJournal::open(&path).await.unwrap();
    for _ in 0..2 {
        let unfinished = journal.unfinished().await.unwrap();
        assert_eq!(
            unfinished.iter().map(|(_, row)| row.id).collect::<Vec<_>>(),
            [run(2)]
        );
        let usage = journal.usage(None, &UsageFilter::default()).await.unwrap();
        assert_eq!((usage[0].runs, usage[0].input_tokens), (1, Some(5)));
    }
    journal.close().await;
    assert_eq!(logs(folder.path()), 0, "nothing is left behind");
}

#[tokio::test]
async fn log_of_a_running_process_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let first = SqliteJournal::open(&path).await.unwrap();
    let second = SqliteJournal::open(&path).await.unwrap();
    let account = open(&first, run(1)).await.unwrap();
    second.unfinished().await.unwrap();
    let tenant = Tenant::local();
    let row = first.find(&tenant, run(1)).await.unwrap().unwrap();
    assert_eq!(row.state, RunState::Running);
    account.end(good());
    let row = first.find(&tenant, run(1)).await.unwrap().unwrap();
    assert_eq!(row.state, RunState::Done);
    assert_eq!(second.attempt_usage(&tenant, run(1)).await.unwrap().len(), 1);
    first.close().await;
    assert_eq!(logs(folder.path()), 0, "nothing is left behind");
}

/// Every read of a call in progress finds its start at once.
#[tokio::test]
async fn reads_do_not_wait_for_the_interval() {
    let folder = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(&folder.path().join("journal.db"))
        .await
        .unwrap();
    let tenant = Tenant::local();
    let began = std::time::Instant::now();
    for number in 1..=40 {
        let _account = open(&journal, run(number)).await.unwrap();
        assert!(journal.find(&tenant, run(number)).await.unwrap().is_some());
    }
    // Forty intervals would take four seconds.
    assert!(began.elapsed() < std::time::Duration::from_secs(3));
}

#[tokio::test]
async fn many_calls_do_not_delay_runs() {
    let folder = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(&folder.path().join("journal.db"))
        .await
        .unwrap();
    let (tenant, many) = (Tenant::local(), 3_000);
    let calls = (1..=many).map(|id| open(&journal, run(id)));
    for account in futures::future::join_all(calls).await {
        account.unwrap().end(good());
    }
    journal.create(&tenant, &new(run(many + 1))).await.unwrap();
    let mut applied = std::pin::pin!(journal.attempt_usage(&tenant, run(many)));
    let mut runs = many + 1;
    let usage = loop {
        tokio::select! {
            biased;
            usage = &mut applied => break usage.unwrap(),
            () = tokio::task::yield_now() => {}
        }
        runs += 1;
        journal.create(&tenant, &new(run(runs))).await.unwrap();
    };
    assert_eq!(usage.len(), 1);
    // Runs that waited for all records would be one or two.
    assert!(runs > many + 5, "{runs}");
}

#[tokio::test]
async fn unreadable_records_are_quarantined_and_the_others_applied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    std::thread::scope(|scope| scope.spawn(|| die(&path)).join().unwrap());
    let left = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let left = left
        .into_iter()
        .find(|path| path.to_str().unwrap().contains("-accounts-"))
        .unwrap();
    let mut text = std::fs::read(&left).unwrap();
    text.extend_from_slice(b"\0\0\0\0{\"record\":\"end\",\"ten");
    std::fs::write(&left, &text).unwrap();
    assert_eq!(quarantined(&path).unwrap(), []);

    let journal = SqliteJournal::open(&path).await.unwrap();
    let unfinished = journal.unfinished().await.unwrap();
    assert_eq!(
        unfinished.iter().map(|(_, row)| row.id).collect::<Vec<_>>(),
        [run(2)]
    );
    journal.close().await;
    assert_eq!(logs(folder.path()), 0, "it is not applied again");
    let found = quarantined(&path).unwrap();
    assert_eq!(
        (found.len(), found[0].unreadable, found[0].is_unchanged),
        (1, 2, true)
    );
    assert_eq!(std::fs::read(&found[0].path).unwrap(), text, "nothing is removed");
    std::fs::write(&found[0].path, "edited").unwrap();
    assert!(!quarantined(&path).unwrap()[0].is_unchanged);
}
