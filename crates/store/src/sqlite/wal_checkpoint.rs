//! The write-ahead log is carried into the file by a thread with a connection of its own: that takes long and ends in
//! waiting for the disk, and no run should wait for it. SQLite lets others write meanwhile, and begins the log anew
//! when all of it is in the file. Where they never leave it a moment for that, whoever writes does it.

use std::cell::Cell;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
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
pub(super) struct WalCheckpointer {
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Held by whoever carries: two at once get in each other's way, and then SQLite has one of them do nothing.
    carrying: Arc<Mutex<()>>,
    /// How long the log was when it was carried last, if it was not begun anew since.
    carried: u32,
}

impl WalCheckpointer {
    pub(super) fn start(path: &Path) -> Result<Self, JournalError> {
        let connection = Connection::open(path).map_err(failed)?;
        let (wake, woken) = sync_channel(1);
        let carrying = Arc::<Mutex<()>>::default();
        let held = carrying.clone();
        let thread = thread::Builder::new()
            .name(String::from("checkpoint"))
            .spawn(move || work(&connection, &held, &woken))
            .map_err(JournalError::from_backend)?;
        Ok(Self {
            wake: Some(wake),
            thread: Some(thread),
            carrying,
            carried: 0,
        })
    }

    /// Has the log carried if it has become long by what was committed on this connection.
    pub(super) fn maybe_checkpoint(&mut self, connection: &Connection) {
        let pages = PAGES.get();
        if pages < self.carried {
            self.carried = 0;
        }
        if pages < limits::WAL_CHECKPOINT_PAGES || pages - self.carried < limits::LOG_PAGES_MORE {
            return;
        }
        self.carried = pages;
        if pages >= limits::LOG_PAGES_MAX {
            carry(connection, &self.carrying);
        } else if let Some(wake) = &self.wake {
            // Whoever was told already comes.
            wake.try_send(()).ok();
        }
    }
}

impl Drop for WalCheckpointer {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn work(connection: &Connection, carrying: &Mutex<()>, woken: &Receiver<()>) {
    while woken.recv().is_ok() {
        carry_all(|| carry(connection, carrying));
    }
}

/// Again until nothing came into the log meanwhile, or it was begun anew: what comes meanwhile is little, and quickly
/// carried too.
fn carry_all(mut carry: impl FnMut() -> Option<u64>) {
    let mut before = None;
    for _ in 0..limits::LOG_TRIES_MAX {
        let pages = carry();
        if let (Some(pages), Some(before)) = (pages, before)
            && pages <= before
        {
            return;
        }
        before = pages;
    }
}

/// As much as nobody reads any more. Returns how long the log was as that began, if all of it is in the file now. What
/// stays behind, also because another process carries or the disk took nothing, is carried the next time.
fn carry(connection: &Connection, carrying: &Mutex<()>) -> Option<u64> {
    let _turn = carrying.lock().unwrap_or_else(PoisonError::into_inner);
    let pages = |row: &Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
    let carried = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], pages);
    let (all, carried) = carried.ok()?;
    // Both are -1 where it could not be tried.
    u64::try_from(all).ok().filter(|_| all == carried)
}

#[cfg(test)]
mod tests {
    use super::carry_all;

    /// How often it is tried when the log is found this long, time after time.
    fn tries(found: &[Option<u64>]) -> usize {
        let mut found = found.iter();
        let mut count = 0;
        carry_all(|| {
            count += 1;
            found.next().copied().flatten()
        });
        count
    }

    #[test]
    fn what_came_meanwhile_is_carried_behind_the_rest() {
        assert_eq!(tries(&[Some(4_000), Some(4_000)]), 2, "nothing came");
        assert_eq!(tries(&[Some(4_000), Some(4_100), Some(4_100)]), 3);
        assert_eq!(tries(&[Some(4_000), Some(3)]), 2, "it was begun anew");
        assert_eq!(
            tries(&[None, Some(4_000), Some(4_000)]),
            3,
            "somebody else was at it"
        );
        assert_eq!(tries(&[1, 2, 3, 4, 5, 6].map(Some)), 4, "somebody never stops");
        assert_eq!(tries(&[]), 4, "the disk takes nothing");
    }
}
