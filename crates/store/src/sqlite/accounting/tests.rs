//! A slow log and a locked database delay only the calls that wait for them.

use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use engine::Tenant;
use engine::port::{Commit, NewRun, RunEnd, RunKind};
use futures::FutureExt;
use ir::RunId;
use rusqlite::Connection;
use tokio::time::timeout;

use super::Accounting;
use super::segment::{LogFile, LogSegment};
use crate::sqlite::database::{Options, Readers, prepare};
use crate::sqlite::writer::{WriteOp, Writer};

const SOON: Duration = Duration::from_secs(10);

/// A file whose writes wait for a permission each.
struct SlowFile {
    began: Sender<()>,
    permitted: Receiver<()>,
}

impl LogFile for SlowFile {
    fn append(&mut self, _: &[u8]) -> io::Result<()> {
        self.began.send(()).ok();
        self.permitted.recv().map_err(io::Error::other)
    }
}

fn new(number: u128, kind: RunKind) -> NewRun {
    NewRun {
        id: RunId::from_parts(1, number),
        kind,
        command: String::from("{}"),
        created_at_ms: 1,
        client: String::from("c"),
        once: None,
    }
}

fn create(writer: &Writer, number: u128) -> Commit {
    writer.write(WriteOp::Create {
        tenant: Tenant::local(),
        run: new(number, RunKind::Module(String::from("m"))),
    })
}

async fn count(readers: &Readers) -> i64 {
    let query = |connection: &Connection| {
        let count = connection.query_row("SELECT count(*) FROM run", [], |row| row.get(0));
        count.map_err(crate::sqlite::row::failed)
    };
    timeout(SOON, readers.read(query)).await.unwrap().unwrap()
}

fn start(path: &Path) -> (Writer, Readers, Accounting, Receiver<()>, Sender<()>) {
    prepare(path).unwrap();
    let writer = Writer::start(path, Options::default()).unwrap();
    let (began, seen) = channel();
    let (permit, permitted) = channel();
    let file = std::sync::Mutex::new(Some(SlowFile { began, permitted }));
    let accounting = Accounting::start_with(writer.clone(), move || {
        let file = file.lock().unwrap().take();
        Ok(LogSegment::on(Box::new(file.ok_or(io::ErrorKind::Other)?)))
    });
    (writer, Readers::new(path), accounting.unwrap(), seen, permit)
}

/// All of it runs on one thread: a call that blocked would stop the test.
#[tokio::test]
async fn slow_log_and_locked_database_do_not_block_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let (writer, readers, accounting, seen, permit) = start(&path);
    let tenant = Tenant::local();
    let relay = |number| accounting.open(&tenant, &new(number, RunKind::Relay)).unwrap();

    // The log is blocked: calls wait for their start, runs and reads do not.
    let (first, mut first_started) = relay(1);
    seen.recv_timeout(SOON).unwrap();
    timeout(SOON, create(&writer, 100)).await.unwrap().unwrap();
    assert_eq!(count(&readers).await, 1);
    // These share the next write.
    let (second, mut second_started) = relay(2);
    let (third, mut third_started) = relay(3);
    for started in [&mut first_started, &mut second_started, &mut third_started] {
        assert!(started.now_or_never().is_none());
    }
    permit.send(()).unwrap();
    timeout(SOON, first_started).await.unwrap().unwrap();
    seen.recv_timeout(SOON).unwrap();

    // The database is locked, too: runs wait, reads do not.
    let locker = Connection::open(&path).unwrap();
    locker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut created = create(&writer, 101);
    // The place of the record was reserved.
    first.end(RunEnd::new(None, 2, Vec::new()));
    assert_eq!(count(&readers).await, 1);
    assert!((&mut created).now_or_never().is_none());
    // The log goes on: calls start although their records cannot be applied.
    permit.send(()).unwrap();
    for started in [second_started, third_started] {
        timeout(SOON, started).await.unwrap().unwrap();
    }
    permit.send(()).unwrap();
    second.end(RunEnd::new(None, 2, Vec::new()));
    third.end(RunEnd::new(None, 2, Vec::new()));
    permit.send(()).unwrap();
    permit.send(()).unwrap();
    assert!((&mut created).now_or_never().is_none());

    locker.execute_batch("ROLLBACK").unwrap();
    timeout(SOON, created).await.unwrap().unwrap();
    timeout(SOON, accounting.settle()).await.unwrap().unwrap();
    assert_eq!(count(&readers).await, 5);
}
