//! A run in progress, as its readers see it: the latest events, how far the journal has come, and a
//! count of who is listening. Readers that fall behind the latest events read the journal instead, so
//! a slow one costs nothing; nor does one that keeps up, as long as it is alone.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio_util::sync::CancellationToken;

use crate::limits;
use crate::port::JournalEntry;
use tenancy::Tenant;

#[derive(Debug)]
pub(crate) struct RunBroadcast {
    pub(crate) tenant: Tenant,
    ring: Mutex<Ring>,
    /// More can come.
    open: AtomicBool,
    /// Told to all readers: there is more, or there will be no more.
    changed: Notify,
    readers: AtomicUsize,
    /// Told to the one who drives the run: somebody came or left.
    readers_changed: Notify,
    pub(crate) cancel: CancellationToken,
}

#[derive(Debug, Default)]
struct Ring {
    entries: VecDeque<JournalEntry>,
    bytes: usize,
    /// The offset of the last event.
    tail: u64,
    /// The newest of those that the only reader has taken away, until there is a newer one: an end that the journal
    /// does not have yet is still there for whoever comes next.
    last_taken: Option<JournalEntry>,
}

impl Ring {
    fn add(&mut self, entries: Vec<JournalEntry>) {
        self.last_taken = None;
        self.tail = entries.last().map_or(self.tail, |entry| entry.offset);
        self.bytes += entries.iter().map(|entry| entry.event.body.len()).sum::<usize>();
        match self.entries.is_empty() {
            // In the room that they have already.
            true => self.entries = VecDeque::from(entries),
            false => self.entries.extend(entries),
        }
        self.shrink(limits::RING_BYTES_MAX);
    }

    /// The offset of the oldest that is held, or of the next where none is.
    fn first(&self) -> u64 {
        let first = self.entries.front().or(self.last_taken.as_ref());
        first.map_or(self.tail + 1, |entry| entry.offset)
    }

    fn skip(&self, count: usize) -> Vec<JournalEntry> {
        let held = self.entries.iter().chain(&self.last_taken);
        held.skip(count).cloned().collect()
    }

    /// The same for the only reader: what it has had is in the journal for all others, and so is what it gets now.
    fn take(&mut self, count: usize) -> Vec<JournalEntry> {
        if self.entries.is_empty() {
            // Too much may have been in it.
            self.entries = VecDeque::new();
            return self.skip(count);
        }
        self.bytes = 0;
        let mut entries = Vec::from(std::mem::take(&mut self.entries));
        self.last_taken = entries.last().cloned();
        entries.drain(..count.min(entries.len()));
        entries
    }

    /// Lets the oldest go until there are no more than so many bytes.
    fn shrink(&mut self, bytes_max: usize) {
        while self.entries.len() > limits::RING_EVENTS_MAX || self.bytes > bytes_max {
            let Some(old) = self.entries.pop_front() else {
                return;
            };
            self.bytes -= old.event.body.len();
        }
    }

    /// What is small enough to be held for those who are still here once nothing more comes.
    fn end(&mut self) {
        self.shrink(limits::RING_ENDED_BYTES_MAX);
        self.last_taken
            .take_if(|entry| entry.event.body.len() > limits::RING_ENDED_BYTES_MAX);
    }
}

impl RunBroadcast {
    /// A run whose journal ends at `offset` so far.
    pub(crate) fn new(tenant: Tenant, offset: u64) -> Arc<Self> {
        let ring = Ring {
            tail: offset,
            ..Ring::default()
        };
        Arc::new(Self {
            tenant,
            ring: Mutex::new(ring),
            open: AtomicBool::new(true),
            changed: Notify::new(),
            readers: AtomicUsize::new(0),
            readers_changed: Notify::new(),
            cancel: CancellationToken::new(),
        })
    }

    /// Shows events to readers. They are in the journal by now.
    pub(crate) fn publish(&self, entries: Vec<JournalEntry>) {
        if entries.is_empty() {
            return;
        }
        self.ring().add(entries);
        self.changed.notify_waiters();
    }

    /// Nothing more will come from here. Readers that are still here may be slow ones, and the journal has all of
    /// it: only what is small enough to be held for them is.
    pub(crate) fn close(&self) {
        self.ring().end();
        self.open.store(false, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    /// Whether more can come. Whoever asks this before [`Self::after`] misses nothing.
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }

    /// The events behind `cursor`, for a reader that has a seat; `None` if some of them are no longer held.
    pub(crate) fn events_after(&self, cursor: u64) -> Option<Vec<JournalEntry>> {
        let is_alone = self.readers.load(Ordering::SeqCst) == 1;
        let mut ring = self.ring();
        let first = ring.first();
        if cursor + 1 < first {
            return None;
        }
        let skip = usize::try_from(cursor + 1 - first).unwrap_or(usize::MAX);
        Some(match is_alone {
            true => ring.take(skip),
            false => ring.skip(skip),
        })
    }

    /// Completes with the first news from now on, also with those before it is waited for.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Completes when somebody has come or left since it last did, even if they are gone again; says whether anybody
    /// listens. Only one can wait for it.
    pub(crate) async fn wait_readers_changed(&self) -> bool {
        self.readers_changed.notified().await;
        self.readers.load(Ordering::SeqCst) > 0
    }

    pub(crate) fn add_reader(self: &Arc<Self>) -> ReaderGuard {
        self.readers.fetch_add(1, Ordering::SeqCst);
        self.readers_changed.notify_one();
        ReaderGuard(self.clone())
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        // No code panics while it holds the lock, so a poisoned ring is still whole.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Someone listens for as long as this exists.
#[derive(Debug)]
pub(crate) struct ReaderGuard(Arc<RunBroadcast>);

impl ReaderGuard {
    pub(crate) fn live(&self) -> &Arc<RunBroadcast> {
        &self.0
    }
}

impl Drop for ReaderGuard {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Ordering::SeqCst);
        self.0.readers_changed.notify_one();
    }
}
