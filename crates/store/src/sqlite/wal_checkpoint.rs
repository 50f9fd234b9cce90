//! WAL checkpoints run on a thread with its own connection: they take long and wait for the disk, which must
//! not delay runs. SQLite permits writes meanwhile, and restarts the log once all of it is in the database.
//! If the writers leave no gap for that, a writer runs the checkpoint itself.

use std::cell::Cell;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use engine::port::JournalError;
use rusqlite::{Connection, Row};

use super::database::connect;
use super::row::failed;
use crate::limits;

thread_local! {
    /// Pages in the log after the last commit of this thread.
    static PAGES: Cell<u32> = const { Cell::new(0) };
}

/// Tracks the size of the log for commits on this connection and disables SQLite's own checkpoints.
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
    /// Locked during a checkpoint: of two concurrent ones, SQLite skips one.
    checkpoint_lock: Arc<Mutex<()>>,
    /// Size of the log at the last checkpoint; 0 if it was restarted since.
    last_pages: u32,
}

impl WalCheckpointer {
    pub(super) fn start(path: &Path) -> Result<Self, JournalError> {
        let connection = connect(path, limits::READER_CACHE_KIB).map_err(failed)?;
        let (wake, woken) = sync_channel(1);
        let checkpoint_lock = Arc::<Mutex<()>>::default();
        let held = checkpoint_lock.clone();
        let thread = thread::Builder::new()
            .name(String::from("checkpoint"))
            .spawn(move || work(&connection, &held, &woken))
            .map_err(JournalError::from_backend)?;
        Ok(Self {
            wake: Some(wake),
            thread: Some(thread),
            checkpoint_lock,
            last_pages: 0,
        })
    }

    /// Starts a checkpoint if commits on this connection have made the log long enough.
    pub(super) fn maybe_checkpoint(&mut self, connection: &Connection) {
        let pages = PAGES.get();
        if pages < self.last_pages {
            self.last_pages = 0;
        }
        if pages < limits::WAL_CHECKPOINT_PAGES || pages - self.last_pages < limits::LOG_PAGES_MORE {
            return;
        }
        self.last_pages = pages;
        if pages >= limits::LOG_PAGES_MAX {
            checkpoint(connection, &self.checkpoint_lock);
        } else if let Some(wake) = &self.wake {
            // A thread that was woken already needs no second signal.
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

fn work(connection: &Connection, checkpoint_lock: &Mutex<()>, woken: &Receiver<()>) {
    while woken.recv().is_ok() {
        repeat_checkpoint(|| checkpoint(connection, checkpoint_lock));
    }
}

/// Repeats the checkpoint until no pages were added meanwhile or the log was restarted: the pages that are
/// added during one are few, and quickly copied.
fn repeat_checkpoint(mut checkpoint: impl FnMut() -> Option<u64>) {
    let mut before = None;
    for _ in 0..limits::LOG_TRIES_MAX {
        let pages = checkpoint();
        if let (Some(pages), Some(before)) = (pages, before)
            && pages <= before
        {
            return;
        }
        before = pages;
    }
}

/// Copies all pages that no reader needs. Returns the size of the log at the start, if all of it is in the
/// database now. The remaining pages, also if another process runs a checkpoint or the disk is full, are
/// copied the next time.
fn checkpoint(connection: &Connection, checkpoint_lock: &Mutex<()>) -> Option<u64> {
    let _turn = checkpoint_lock.lock().unwrap_or_else(PoisonError::into_inner);
    let pages = |row: &Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
    let copied = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], pages);
    let (all, copied) = copied.ok()?;
    // Both are -1 if the checkpoint could not run.
    u64::try_from(all).ok().filter(|_| all == copied)
}

#[cfg(test)]
mod tests {
    use super::repeat_checkpoint;

    /// How often it is tried when the log is found this long, time after time.
    fn tries(found: &[Option<u64>]) -> usize {
        let mut found = found.iter();
        let mut count = 0;
        repeat_checkpoint(|| {
            count += 1;
            found.next().copied().flatten()
        });
        count
    }

    #[test]
    fn repeats_while_pages_are_added() {
        assert_eq!(tries(&[Some(4_000), Some(4_000)]), 2, "no new pages");
        assert_eq!(tries(&[Some(4_000), Some(4_100), Some(4_100)]), 3);
        assert_eq!(tries(&[Some(4_000), Some(3)]), 2, "the log was restarted");
        assert_eq!(
            tries(&[None, Some(4_000), Some(4_000)]),
            3,
            "another checkpoint was running"
        );
        assert_eq!(tries(&[1, 2, 3, 4, 5, 6].map(Some)), 4, "a writer never stops");
        assert_eq!(tries(&[]), 4, "the disk is full");
    }
}
