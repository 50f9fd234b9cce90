//! The broadcast of a run in progress: a ring buffer of the latest events, the reader count and the cancel
//! token. Readers that fall behind the ring buffer read the journal, so a slow reader needs no memory. A
//! single reader that keeps up takes the events out of the ring buffer, so it needs none either.

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
    /// More events can follow.
    open: AtomicBool,
    /// Notifies all readers of new events and of the close.
    changed: Notify,
    readers: AtomicUsize,
    /// Notifies the task of the run that a reader joined or left.
    readers_changed: Notify,
    pub(crate) cancel: CancellationToken,
}

#[derive(Debug, Default)]
struct Ring {
    entries: VecDeque<JournalEntry>,
    bytes: usize,
    /// The offset of the last event.
    tail: u64,
    /// The newest event that a single reader has taken out, until there is a newer one: the next reader still
    /// gets a terminal event that is not journaled yet.
    last_taken: Option<JournalEntry>,
}

impl Ring {
    fn add(&mut self, entries: Vec<JournalEntry>) {
        self.last_taken = None;
        self.tail = entries.last().map_or(self.tail, |entry| entry.offset);
        self.bytes += entries.iter().map(|entry| entry.event.body.len()).sum::<usize>();
        match self.entries.is_empty() {
            // Reuses the allocation.
            true => self.entries = VecDeque::from(entries),
            false => self.entries.extend(entries),
        }
        self.shrink(limits::RING_BYTES_MAX);
    }

    /// Offset of the oldest buffered event, or of the next one if none is buffered.
    fn first(&self) -> u64 {
        let first = self.entries.front().or(self.last_taken.as_ref());
        first.map_or(self.tail + 1, |entry| entry.offset)
    }

    fn skip(&self, count: usize) -> Vec<JournalEntry> {
        let buffered = self.entries.iter().chain(&self.last_taken);
        buffered.skip(count).cloned().collect()
    }

    /// The same for a single reader: the events are removed; other readers find them in the journal.
    fn take(&mut self, count: usize) -> Vec<JournalEntry> {
        if self.entries.is_empty() {
            // Releases the allocation.
            self.entries = VecDeque::new();
            return self.skip(count);
        }
        self.bytes = 0;
        let mut entries = Vec::from(std::mem::take(&mut self.entries));
        self.last_taken = entries.last().cloned();
        entries.drain(..count.min(entries.len()));
        entries
    }

    /// Removes the oldest events until at most `bytes_max` bytes are left.
    fn shrink(&mut self, bytes_max: usize) {
        while self.entries.len() > limits::RING_EVENTS_MAX || self.bytes > bytes_max {
            let Some(old) = self.entries.pop_front() else {
                return;
            };
            self.bytes -= old.event.body.len();
        }
    }

    /// Shrinks the ring buffer to what is kept for remaining readers after the close.
    fn end(&mut self) {
        self.shrink(limits::RING_ENDED_BYTES_MAX);
        self.last_taken
            .take_if(|entry| entry.event.body.len() > limits::RING_ENDED_BYTES_MAX);
    }
}

impl RunBroadcast {
    /// A run whose last journal entry has this offset.
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

    /// Publishes events to readers. The caller has journaled them.
    pub(crate) fn publish(&self, entries: Vec<JournalEntry>) {
        if entries.is_empty() {
            return;
        }
        self.ring().add(entries);
        self.changed.notify_waiters();
    }

    /// Ends the broadcast. Remaining readers may be slow and can read the journal, so the ring buffer is
    /// shrunk.
    pub(crate) fn close(&self) {
        self.ring().end();
        self.open.store(false, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    /// The offset of the last published event.
    pub(crate) fn last_offset(&self) -> u64 {
        self.ring().tail
    }

    /// Whether more events can follow. A reader that checks this before [`Self::events_after`] misses none.
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }

    /// The events after `cursor`, for a counted reader; `None` if some of them are no longer buffered.
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

    /// Completes on the first change after this call, even if that precedes the first poll.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Completes when a reader has joined or left since the last completion; returns whether there are
    /// readers. Only one task can wait for it.
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
        // No code panics while holding the lock, so a poisoned ring is consistent.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts as a reader until dropped.
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
