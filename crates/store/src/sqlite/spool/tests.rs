//! Spool files on a full disk.

use engine::Tenant;
use engine::port::{LifecycleRecord, NewRun, RunKind};
use ir::RunId;

use super::log::Log;
use super::{Begun, Calls, Desk, Line, Note, Writer};
use crate::sqlite::{Options, SqliteJournal};

fn run(number: usize) -> RunId {
    RunId::from_parts(1, number as u128)
}

fn line(number: usize) -> Line {
    let new = NewRun {
        id: run(number),
        kind: RunKind::Module(String::from("m")),
        command: String::from("{}"),
        created_at_ms: 1,
        client: String::new(),
        once: None,
    };
    Line {
        tenant: Tenant::local(),
        note: Note::Booked(LifecycleRecord::Started(new)),
    }
}

#[test]
fn failed_writes_are_reported_per_record() {
    let mut log = Log::without_room().unwrap();
    for count in [1, 3_usize] {
        for number in 0..count {
            log.add(&line(number)).unwrap();
        }
        let lost: Vec<usize> = log.flush().into_iter().map(|(place, _)| place).collect();
        assert_eq!(lost, (0..count).collect::<Vec<_>>());
        assert_eq!((log.added(), log.added_bytes()), (0, 0));
    }
    assert!(log.flush().is_empty());
}

#[test]
fn failed_record_is_removed_and_reported_once() {
    // Earlier records stay.
    let mut desk = Desk {
        waiting: vec![line(0)],
        log: Some(Log::without_room().unwrap()),
        ..Desk::default()
    };
    for number in 1..=2 {
        desk.put(line(number)).unwrap();
        let begun = Begun {
            tenant: Tenant::local(),
            turn: 0,
            offset: Some(0),
            bytes: 0,
        };
        desk.begun.insert(run(number), begun);
    }
    desk.flush();
    assert_eq!(desk.waiting, [line(0)]);
    assert!(desk.begun.is_empty());
    assert!(desk.accepted(run(0)).is_ok());
    for number in [2, 1] {
        assert!(desk.accepted(run(number)).is_err(), "{number}");
        assert!(desk.accepted(run(number)).is_ok(), "{number}");
    }
}

#[tokio::test]
async fn waiters_ignore_failed_records() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = SqliteJournal::open(&path).await.unwrap();
    let writer = Writer::start(&path, Options::default()).unwrap();
    let calls = Calls::new(path, writer);
    calls.0.desk().log = Some(Log::without_room().unwrap());
    let Note::Booked(booking) = line(1).note else {
        unreachable!()
    };
    assert!(calls.book(&Tenant::local(), booking).is_err());
    calls.settle().await.unwrap();
    calls.close().await;
    drop(journal);
}
