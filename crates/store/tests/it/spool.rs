//! Spooled lifecycle records in SQLite: they survive a killed process, and count once.

use std::path::Path;

use engine::Tenant;
use engine::port::{
    Archive, AttemptUsage, EncodedEvent, EventKind, Journal, JournalError, LifecycleRecord, RunEnd, RunState,
    UsageFilter,
};
use ir::RunId;
use store::sqlite::SqliteJournal;
use testkit::conformance::journal::{new, run};

pub(crate) fn close(run: RunId) -> LifecycleRecord {
    let spent = AttemptUsage {
        attempt: 1,
        outcome: String::from("succeeded"),
        input_tokens: Some(5),
        output_tokens: Some(7),
        ..AttemptUsage::default()
    };
    let end = RunEnd::new(None, 9, vec![spent]);
    LifecycleRecord::Ended { run, last: None, end }
}

/// A killed process: its tasks end right after the records are spooled.
pub(crate) fn die(path: &Path, bookings: &[LifecycleRecord]) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let journal = runtime.block_on(SqliteJournal::open(path)).unwrap();
    runtime.block_on(async {
        for booking in bookings {
            journal.record(&Tenant::local(), booking.clone()).unwrap();
        }
    });
    drop(runtime);
}

pub(crate) fn logs(folder: &Path) -> usize {
    let names = std::fs::read_dir(folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains("-calls-")).count()
}

#[tokio::test]
async fn orphaned_spool_is_recovered_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let bookings = [
        LifecycleRecord::Started(new(run(1))),
        close(run(1)),
        LifecycleRecord::Started(new(run(2))),
    ];
    std::thread::scope(|scope| scope.spawn(|| die(&path, &bookings)).join().unwrap());
    assert!(logs(folder.path()) > 0);
    // A partial record was being written when the process was killed.
    let torn = folder.path().join("journal.db-calls-0-0a");
    std::fs::write(&torn, "+{\"tenant\":\"local\",\"id\":").unwrap();
    let journal = SqliteJournal::open(&path).await.unwrap();
    for _ in 0..2 {
        let unfinished = journal.unfinished().await.unwrap();
        assert_eq!(
            unfinished.iter().map(|(_, row)| row.id).collect::<Vec<_>>(),
            [run(2)]
        );
        let usage = journal.usage(None, &UsageFilter::default()).await.unwrap();
        assert_eq!(usage[0].input_tokens, Some(5));
        assert_eq!(usage[0].runs, 1);
    }
    assert_eq!(logs(folder.path()), 0);
}

/// Total size of the spool files.
fn logged(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let logs = entries.filter(|entry| entry.file_name().to_str().unwrap().contains("-calls-"));
    logs.map(|entry| entry.metadata().unwrap().len()).sum()
}

#[tokio::test]
async fn buffered_records_are_flushed_in_one_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    std::thread::scope(|scope| {
        let dies = || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let journal = runtime.block_on(SqliteJournal::open(&path)).unwrap();
            runtime.block_on(async {
                for number in 1..=3 {
                    let enter = LifecycleRecord::Started(new(run(number)));
                    journal.buffer(&Tenant::local(), enter).unwrap();
                    assert_eq!(logged(folder.path()), 0);
                }
                journal.flush(run(2)).unwrap();
                let all = logged(folder.path());
                assert!(all > 0);
                // The records of the other runs are written too.
                journal.flush(run(1)).unwrap();
                journal.flush(run(3)).unwrap();
                assert_eq!(logged(folder.path()), all);
                journal.buffer(&Tenant::local(), close(run(1))).unwrap();
                assert_eq!(logged(folder.path()), all);
                journal.flush(run(1)).unwrap();
                // This record was not flushed, so it does not exist.
                let late = LifecycleRecord::Started(new(run(4)));
                journal.buffer(&Tenant::local(), late).unwrap();
            });
            drop(runtime);
        };
        scope.spawn(dies).join().unwrap();
    });
    let journal = SqliteJournal::open(&path).await.unwrap();
    let unfinished = journal.unfinished().await.unwrap();
    assert_eq!(
        unfinished.iter().map(|(_, row)| row.id).collect::<Vec<_>>(),
        [run(2), run(3)]
    );
    let usage = journal.usage(None, &UsageFilter::default()).await.unwrap();
    assert_eq!((usage[0].runs, usage[0].input_tokens), (1, Some(5)));
}

/// Older versions wrote long texts as JSON.
#[tokio::test]
async fn older_spool_format_is_recovered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let old = concat!(
        r#"+{"tenant":"local","id":"sess_00000000010000000000000001","module":"m","command":"{\"a\":1}","created_at_ms":1,"client":"c"}"#,
        "\n",
        r#"={"tenant":"local","id":"sess_00000000010000000000000001","events":[{"kind":"chunk","seq":1,"body":"{\"seq\":1}"}],"end":null}"#,
        "\n",
        r#"+{"tenant":"local","id":"sess_00000000010000000000000002","module":"m","command":"{}","created_at_ms":1,"client":"c"}"#,
        "\n",
        r#"-{"tenant":"local","id":"sess_00000000010000000000000002","code":null,"at_ms":9,"review":null,"spent":[{"attempt":1,"backend":null,"model":null,"outcome":"succeeded","input_tokens":5,"output_tokens":7,"estimated_tokens":null}],"last":{"kind":"final","seq":null,"body":"{\"é\":2}"}}"#,
        "\n",
        r#"={"tenant":"local","id":"sess_00000000010000000000000001","events":[{"kind":"chunk","seq":2,"body":"{\"se"#,
    );
    std::fs::write(folder.path().join("journal.db-calls-1-0a"), old).unwrap();
    let journal = SqliteJournal::open(&path).await.unwrap();
    let tenant = Tenant::local();
    let unfinished = journal.unfinished().await.unwrap();
    assert_eq!(unfinished.len(), 1);
    let row = &unfinished[0].1;
    assert_eq!(
        (row.id, row.command.as_str(), row.last_offset),
        (run(1), "{\"a\":1}", 1)
    );
    let entry = journal.find_chunk(&tenant, run(1), 1).await.unwrap().unwrap();
    assert_eq!(entry.event, said(1));
    let entries = journal.read(&tenant, run(2), 0, 9).await.unwrap();
    assert_eq!((entries.len(), &*entries[0].event.body), (1, "{\"é\":2}"));
    let usage = journal.usage(None, &UsageFilter::default()).await.unwrap();
    assert_eq!((usage[0].runs, usage[0].output_tokens), (1, Some(7)));
    assert_eq!(logs(folder.path()), 0);
}

pub(crate) fn said(seq: u64) -> EncodedEvent {
    EncodedEvent {
        kind: EventKind::Chunk,
        seq: Some(seq),
        body: format!("{{\"seq\":{seq}}}").into(),
    }
}

/// The first events are spooled as soon as they are appended, like the run itself.
#[tokio::test]
async fn spooled_events_are_recovered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    std::thread::scope(|scope| {
        let dying = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let journal = runtime.block_on(SqliteJournal::open(&path)).unwrap();
            let (tenant, events) = (Tenant::local(), [said(1), said(2)]);
            let speaks = async {
                for id in 1..=2 {
                    journal
                        .record(&tenant, LifecycleRecord::Started(new(run(id))))
                        .unwrap();
                    journal.append(&tenant, run(id), 0, &events).await.unwrap();
                }
                // An event too large for the spool is written together with the earlier ones.
                journal.append(&tenant, run(2), 2, &[said(3)]).await.unwrap();
                journal
                    .append(&tenant, run(2), 3, &[large(20_000)])
                    .await
                    .unwrap();
                journal.append(&tenant, run(2), 4, &[said(5)]).await.unwrap();
            };
            runtime.block_on(speaks);
            drop(runtime);
        });
        dying.join().unwrap();
    });
    let journal = SqliteJournal::open(&path).await.unwrap();
    let tenant = Tenant::local();
    for _ in 0..2 {
        let unfinished = journal.unfinished().await.unwrap();
        let ends = unfinished.iter().map(|(_, row)| (row.id, row.last_offset));
        assert_eq!(ends.collect::<Vec<_>>(), [(run(1), 2), (run(2), 5)]);
        let entries = journal.read(&tenant, run(2), 0, 9).await.unwrap();
        let events = [said(1), said(2), said(3), large(20_000), said(5)];
        let expected = (1..).zip(events);
        assert!(
            entries
                .into_iter()
                .map(|entry| (entry.offset, entry.event))
                .eq(expected)
        );
    }
}

/// A run is created once, regardless of the path of its record, and every read finds it.
#[tokio::test]
async fn run_is_created_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = SqliteJournal::open(&path).await.unwrap();
    let tenant = Tenant::local();
    journal
        .record(&tenant, LifecycleRecord::Started(new(run(1))))
        .unwrap();
    journal.append(&tenant, run(1), 0, &[said(1)]).await.unwrap();
    let again = journal.append(&tenant, run(1), 0, &[said(1)]).await;
    assert!(matches!(again, Err(JournalError::Fenced(_))), "{again:?}");
    let other = Tenant::new("other");
    let foreign = journal.append(&other, run(1), 0, &[said(1)]).await;
    assert!(matches!(foreign, Err(JournalError::Unknown(_))), "{foreign:?}");
    for (id, seq) in [(2, 1), (3, 2)] {
        journal
            .record(&tenant, LifecycleRecord::Started(new(run(id))))
            .unwrap();
        journal
            .append(&tenant, run(id), 0, &[said(1), said(2)])
            .await
            .unwrap();
        let entry = journal.find_chunk(&tenant, run(id), seq).await.unwrap().unwrap();
        assert_eq!((entry.offset, entry.event), (seq, said(seq)));
    }
    // A run that ends at once ends once, and its usage is recorded.
    let LifecycleRecord::Ended { end, .. } = close(run(5)) else {
        unreachable!()
    };
    journal
        .record(&tenant, LifecycleRecord::Started(new(run(5))))
        .unwrap();
    journal.append(&tenant, run(5), 0, &[said(1)]).await.unwrap();
    journal
        .finish(&tenant, run(5), 1, &[large(9)], &end)
        .await
        .unwrap();
    let late = journal.append(&tenant, run(5), 2, &[said(2)]).await;
    assert!(matches!(late, Err(JournalError::Ended(_))), "{late:?}");
    let row = journal.find(&tenant, run(5)).await.unwrap().unwrap();
    assert_eq!((row.state, row.last_offset), (RunState::Done, 2));
    assert_eq!(journal.attempt_usage(&tenant, run(5)).await.unwrap().len(), 1);
    // A second server sees all events in the tables, and appends after them.
    let second = SqliteJournal::open(&path).await.unwrap();
    assert_eq!(
        second.find(&tenant, run(3)).await.unwrap().unwrap().last_offset,
        2
    );
    second.append(&tenant, run(3), 2, &[said(3)]).await.unwrap();
    let late = journal.append(&tenant, run(3), 2, &[said(3)]).await;
    assert!(matches!(late, Err(JournalError::Fenced(_))), "{late:?}");
}

#[tokio::test]
async fn spool_of_a_running_process_is_not_recovered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let first = SqliteJournal::open(&path).await.unwrap();
    let second = SqliteJournal::open(&path).await.unwrap();
    first
        .record(&Tenant::local(), LifecycleRecord::Started(new(run(1))))
        .unwrap();
    second.unfinished().await.unwrap();
    assert_eq!(logs(folder.path()), 2, "they are in use");
    first.record(&Tenant::local(), close(run(1))).unwrap();
    assert!(first.find(&Tenant::local(), run(1)).await.unwrap().is_some());
    assert_eq!(
        second
            .attempt_usage(&Tenant::local(), run(1))
            .await
            .unwrap()
            .len(),
        1
    );
    first.close().await;
    drop(first);
    assert_eq!(logs(folder.path()), 0, "nothing is left behind");
}

pub(crate) fn large(bytes: usize) -> EncodedEvent {
    EncodedEvent {
        kind: EventKind::Final,
        seq: None,
        body: "x".repeat(bytes).into(),
    }
}

#[tokio::test]
async fn reads_do_not_wait_for_the_flush_interval() {
    let folder = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(&folder.path().join("journal.db"))
        .await
        .unwrap();
    let tenant = Tenant::local();
    let began = std::time::Instant::now();
    for number in 1..=40 {
        journal
            .record(&tenant, LifecycleRecord::Started(new(run(number))))
            .unwrap();
        assert!(journal.find(&tenant, run(number)).await.unwrap().is_some());
    }
    // Forty flush intervals would take four seconds.
    assert!(began.elapsed() < std::time::Duration::from_secs(3));
}

#[tokio::test]
async fn append_waits_for_one_flush_step_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(&folder.path().join("journal.db"))
        .await
        .unwrap();
    let (tenant, many) = (Tenant::local(), 5_000);
    // It is spooled with the others, and flushed last.
    let speaker = run(many + 1);
    for id in 1..=many + 1 {
        journal
            .buffer(&tenant, LifecycleRecord::Started(new(run(id))))
            .unwrap();
    }
    for id in 1..=many {
        journal.buffer(&tenant, close(run(id))).unwrap();
    }
    journal.flush(speaker).unwrap();
    let mut settled = std::pin::pin!(journal.find(&tenant, run(1)));
    let mut said_so_far = 0;
    let row = loop {
        tokio::select! {
            biased;
            row = &mut settled => break row.unwrap().unwrap(),
            () = tokio::task::yield_now() => {}
        }
        let event = said(said_so_far + 1);
        journal
            .append(&tenant, speaker, said_so_far, &[event])
            .await
            .unwrap();
        said_so_far += 1;
    };
    // An append that waited for all of them would happen once or twice.
    assert!(said_so_far > 10, "{said_so_far}");
    assert_eq!(row.state, RunState::Done);
    let usage = journal.usage(None, &UsageFilter::default()).await.unwrap();
    assert_eq!(usage[0].runs, u64::try_from(many).unwrap());
    let mut heard = Vec::new();
    while heard.len() < usize::try_from(said_so_far).unwrap() {
        let entries = journal.read(&tenant, speaker, heard.len() as u64, 100).await;
        heard.extend(entries.unwrap().into_iter().map(|entry| entry.event));
    }
    assert_eq!(heard, (1..=said_so_far).map(said).collect::<Vec<_>>());
}
