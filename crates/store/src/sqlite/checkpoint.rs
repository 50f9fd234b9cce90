//! The write-ahead log is carried into the file by a thread with a connection of its own: that takes long and ends in
//! waiting for the disk, and no run should wait for it. SQLite lets others write meanwhile, and begins the log anew
//! when all of it is in the file. Where they never leave it a moment for that, whoever writes does it.

use std::cell::Cell;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use engine::port::JournalError;
use rusqlite::{Connection, Row};

use super::writer::failed;
use crate::limits;

thread_local! {
    /// Pages in the log, as the last commit of this thread has left it.
    static PAGES: Cell<u32> = const { Cell::new(0) };
}

/// From now on the thread that commits on this connection knows how long the log is, and SQLite leaves it alone.
pub(super) fn count_pages(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
    connection.wal_hook(Some(|_, pages| {
        PAGES.set(u32::try_from(pages).unwrap_or(0));
        Ok(())
    }));
    Ok(())
}

#[derive(Debug)]
pub(super) struct Checkpoints {
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    /// How long the log was when it was carried last, if it was not begun anew since.
    carried: u32,
}

impl Checkpoints {
    pub(super) fn start(path: &Path) -> Result<Self, JournalError> {
        let connection = Connection::open(path).map_err(failed)?;
        let (wake, woken) = sync_channel(1);
        let thread = thread::Builder::new()
            .name(String::from("checkpoint"))
            .spawn(move || work(&connection, &woken))
            .map_err(JournalError::storage)?;
        Ok(Self {
            wake: Some(wake),
            thread: Some(thread),
            carried: 0,
        })
    }

    /// Has the log carried if it has become long by what was committed on this connection.
    pub(super) fn look(&mut self, connection: &Connection) {
        let pages = PAGES.get();
        if pages < self.carried {
            self.carried = 0;
        }
        if pages < limits::LOG_PAGES || pages - self.carried < limits::LOG_PAGES_MORE {
            return;
        }
        self.carried = pages;
        if pages >= limits::LOG_PAGES_MAX {
            carry(connection);
        } else if let Some(wake) = &self.wake {
            // Whoever was told already comes.
            wake.try_send(()).ok();
        }
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn work(connection: &Connection, woken: &Receiver<()>) {
    while woken.recv().is_ok() {
        // What came into the log meanwhile is little, and quickly carried too.
        let mut tries = 0..limits::LOG_TRIES_MAX;
        while tries.next().is_some() && !carry(connection) {}
    }
}

/// As much as nobody reads any more. Returns whether that was all of it. What stays behind, also because the disk took
/// nothing, is carried the next time.
fn carry(connection: &Connection) -> bool {
    let pages = |row: &Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
    let carried = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], pages);
    carried.is_ok_and(|(all, carried)| all == carried)
}
