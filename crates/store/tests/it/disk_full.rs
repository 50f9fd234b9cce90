//! A file that becomes full with records in the spool: they stay readable, new runs are refused, and a server
//! can start.

use std::path::Path;

use engine::Tenant;
use engine::port::{Archive, Journal, JournalError, LifecycleRecord, PruneRequest, RunState};
use store::sqlite::{Options, SqliteJournal};
use testkit::conformance::journal::{new, run};

use crate::spool::{close, die, large, logs, said};

/// At most four ended runs.
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
};

/// A journal with no space for large events.
async fn nearly_full(path: &Path) -> SqliteJournal {
    let journal = SqliteJournal::open_with(path, FULL).await.unwrap();
    let (tenant, event) = (Tenant::local(), [large(20_000)]);
    journal.create(&tenant, &new(run(1))).await.unwrap();
    let mut after = 0;
    while journal.append(&tenant, run(1), after, &event).await.is_ok() {
        after += 1;
    }
    journal
}

#[tokio::test]
async fn events_are_readable_when_the_file_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = nearly_full(&path).await;
    let tenant = Tenant::local();
    let LifecycleRecord::Ended { end, .. } = close(run(2)) else {
        unreachable!()
    };
    // Together they are too large, which is not detected yet.
    let first = [said(1), said(2), large(15_000)];
    for id in [2, 3] {
        journal
            .record(&tenant, LifecycleRecord::Started(new(run(id))))
            .unwrap();
        journal.append(&tenant, run(id), 0, &first).await.unwrap();
    }
    journal
        .finish(&tenant, run(2), 3, &[said(3)], &end)
        .await
        .unwrap();
    for (id, state, count) in [(2, RunState::Done, 4), (3, RunState::Running, 3)] {
        let row = journal.find(&tenant, run(id)).await.unwrap().unwrap();
        assert_eq!((row.state, row.last_offset), (state, count));
        let entries = journal.read(&tenant, run(id), 1, 1).await.unwrap();
        assert_eq!(
            (entries.len(), entries[0].offset, &entries[0].event),
            (1, 2, &said(2))
        );
        let entry = journal.find_chunk(&tenant, run(id), 1).await.unwrap().unwrap();
        assert_eq!(entry.event, said(1));
    }
    assert_eq!(journal.attempt_usage(&tenant, run(2)).await.unwrap().len(), 1);
    let more = journal.append(&tenant, run(3), 3, &[large(20_000)]).await;
    assert!(matches!(more, Err(JournalError::Full)), "{more:?}");
    journal.close().await;
    drop(journal);
    // With space again, it is readable.
    let journal = SqliteJournal::open(&path).await.unwrap();
    let unfinished = journal.unfinished().await.unwrap();
    let ids = unfinished.iter().map(|(_, row)| row.id);
    assert_eq!(ids.collect::<Vec<_>>(), [run(1), run(3)]);
    for (id, count) in [(2, 4), (3, 3)] {
        let entries = journal.read(&tenant, run(id), 0, 9).await.unwrap();
        assert_eq!(entries.len(), count);
    }
    assert_eq!(journal.attempt_usage(&tenant, run(2)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn unwritten_records_are_readable_and_new_runs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = nearly_full(&path).await;
    let tenant = Tenant::local();
    // Before the first flush, the full file is not detected.
    let last = large(30_000);
    journal
        .record(&tenant, LifecycleRecord::Started(new(run(2))))
        .unwrap();
    let LifecycleRecord::Ended { run: own, end, .. } = close(run(2)) else {
        unreachable!()
    };
    let booking = LifecycleRecord::Ended {
        run: own,
        last: Some(last.clone()),
        end,
    };
    journal.record(&tenant, booking).unwrap();
    let row = journal.find(&tenant, run(2)).await.unwrap().unwrap();
    assert_eq!((row.state, row.last_offset), (RunState::Done, 1));
    let entries = journal.read(&tenant, run(2), 0, 5).await.unwrap();
    assert_eq!(entries[0].event, last);
    assert_eq!(
        journal.attempt_usage(&tenant, run(2)).await.unwrap()[0].input_tokens,
        Some(5)
    );
    assert!(journal.find(&tenant, run(1)).await.unwrap().is_some());
    let more = journal.record(&tenant, LifecycleRecord::Started(new(run(3))));
    assert!(matches!(more, Err(JournalError::Full)), "{more:?}");
    journal.close().await;
    drop(journal);
    // With space again, it is readable.
    let journal = SqliteJournal::open(&path).await.unwrap();
    assert!(
        journal
            .unfinished()
            .await
            .unwrap()
            .iter()
            .all(|(_, row)| row.id != run(2))
    );
    let entries = journal.read(&tenant, run(2), 0, 5).await.unwrap();
    assert_eq!(entries[0].event, last);
}

#[tokio::test]
async fn server_starts_with_a_full_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let tenant = Tenant::local();
    let LifecycleRecord::Ended { end, .. } = close(run(1)) else {
        unreachable!()
    };
    let journal = SqliteJournal::open_with(&path, FULL).await.unwrap();
    // Some ended runs, to be pruned later.
    for id in 1..=4 {
        journal.create(&tenant, &new(run(id))).await.unwrap();
        journal
            .finish(&tenant, run(id), 0, &[large(20_000)], &end)
            .await
            .unwrap();
    }
    journal.create(&tenant, &new(run(5))).await.unwrap();
    let mut after = 0;
    while journal
        .append(&tenant, run(5), after, &[large(20_000)])
        .await
        .is_ok()
    {
        after += 1;
    }
    for id in [6, 7] {
        journal
            .record(&tenant, LifecycleRecord::Started(new(run(id))))
            .unwrap();
        let words = [said(1), large(15_000)];
        journal.append(&tenant, run(id), 0, &words).await.unwrap();
    }
    journal
        .finish(&tenant, run(6), 2, &[said(2)], &end)
        .await
        .unwrap();
    journal.close().await;
    drop(journal);
    assert!(logs(folder.path()) > 0, "they are not in the file");
    // One of the two files is usually empty.
    std::fs::write(folder.path().join("journal.db-calls-0-0a"), "").unwrap();

    let journal = SqliteJournal::open_with(&path, FULL).await.unwrap();
    for _ in 0..2 {
        let unfinished = journal.unfinished().await.unwrap();
        let ids = unfinished.iter().map(|(_, row)| row.id);
        assert_eq!(ids.collect::<Vec<_>>(), [run(5), run(7)]);
    }
    let row = journal.find(&tenant, run(6)).await.unwrap().unwrap();
    assert_eq!((row.state, row.last_offset), (RunState::Done, 3));
    assert_eq!(journal.read(&tenant, run(7), 0, 9).await.unwrap().len(), 2);
    let more = journal.record(&tenant, LifecycleRecord::Started(new(run(8))));
    assert!(matches!(more, Err(JournalError::Full)), "{more:?}");
    let ended = journal.finish(&tenant, run(7), 2, &[large(20_000)], &end).await;
    assert!(matches!(ended, Err(JournalError::Full)), "{ended:?}");

    assert_eq!(journal.prune(&ALL_THAT_ENDED).await.unwrap().runs, 4);
    journal
        .finish(&tenant, run(7), 2, &[large(20_000)], &end)
        .await
        .unwrap();
    // The flush is retried automatically, then new runs are accepted.
    while journal
        .record(&tenant, LifecycleRecord::Started(new(run(8))))
        .is_err()
    {
        tokio::task::yield_now().await;
    }
    for (id, count) in [(6, 3), (7, 3)] {
        assert_eq!(journal.read(&tenant, run(id), 0, 9).await.unwrap().len(), count);
        assert_eq!(journal.attempt_usage(&tenant, run(id)).await.unwrap().len(), 1);
    }
    journal.close().await;
    drop(journal);
    assert_eq!(logs(folder.path()), 0, "nothing is left behind");
}

#[tokio::test]
async fn record_of_a_pruned_run_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let tenant = Tenant::local();
    let bookings = [LifecycleRecord::Started(new(run(1))), close(run(1))];
    let left = tempfile::tempdir().unwrap();
    let elsewhere = left.path().join("journal.db");
    std::thread::scope(|scope| scope.spawn(|| die(&elsewhere, &bookings)).join().unwrap());
    let log = std::fs::read_dir(left.path())
        .unwrap()
        .map(|entry| entry.unwrap());
    let log = log
        .filter(|entry| entry.file_name().to_str().unwrap().contains("-calls-"))
        .find(|entry| entry.metadata().unwrap().len() > 0)
        .unwrap()
        .path();
    let journal = SqliteJournal::open(&path).await.unwrap();
    for name in ["journal.db-calls-0-0a", "journal.db-calls-0-1a"] {
        std::fs::copy(&log, folder.path().join(name)).unwrap();
        journal.unfinished().await.unwrap();
        assert_eq!(journal.prune(&ALL_THAT_ENDED).await.unwrap().runs, 1);
    }
    assert_eq!(logs(folder.path()), 0, "both were picked up");
    assert_eq!(journal.attempt_usage(&tenant, run(1)).await.unwrap().len(), 1);
}
