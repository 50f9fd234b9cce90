//! A run in progress, as its readers see it: the latest events, how far the journal has come, and a
//! count of who is listening. Readers that fall behind the latest events read the journal instead, so
//! a slow one costs nothing; nor does one that keeps up, as long as it is alone.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::limits;
use crate::port::Entry;
use tenancy::Tenant;

#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) tenant: Tenant,
    ring: Mutex<Ring>,
    tail: watch::Sender<Tail>,
    seats: watch::Sender<usize>,
    pub(crate) cancel: CancellationToken,
}

/// The offset of the last event, and whether more can come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    pub(crate) offset: u64,
    pub(crate) open: bool,
}

#[derive(Debug, Default)]
struct Ring {
    entries: VecDeque<Entry>,
    bytes: usize,
    /// The newest of those that the only reader has taken away, until there is a newer one: an end that the journal
    /// does not have yet is still there for whoever comes next.
    taken: Option<Entry>,
}

impl Ring {
    fn add(&mut self, entries: Vec<Entry>) {
        self.taken = None;
        self.bytes += entries.iter().map(|entry| entry.event.body.len()).sum::<usize>();
        match self.entries.is_empty() {
            // In the room that they have already.
            true => self.entries = VecDeque::from(entries),
            false => self.entries.extend(entries),
        }
        self.shrink(limits::RING_BYTES_MAX);
    }

    /// The offset of the oldest that is held.
    fn first(&self) -> Option<u64> {
        let first = self.entries.front().or(self.taken.as_ref());
        first.map(|entry| entry.offset)
    }

    fn skip(&self, count: usize) -> Vec<Entry> {
        let held = self.entries.iter().chain(&self.taken);
        held.skip(count).cloned().collect()
    }

    /// The same for the only reader: what it has had is in the journal for all others, and so is what it gets now.
    fn take(&mut self, count: usize) -> Vec<Entry> {
        if self.entries.is_empty() {
            return self.skip(count);
        }
        self.bytes = 0;
        let mut entries = Vec::from(std::mem::take(&mut self.entries));
        self.taken = entries.last().cloned();
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
        self.taken
            .take_if(|entry| entry.event.body.len() > limits::RING_ENDED_BYTES_MAX);
    }
}

impl Live {
    /// A run whose journal ends at `offset` so far.
    pub(crate) fn new(tenant: Tenant, offset: u64) -> Arc<Self> {
        let tail = Tail { offset, open: true };
        Arc::new(Self {
            tenant,
            ring: Mutex::default(),
            tail: watch::Sender::new(tail),
            seats: watch::Sender::new(0),
            cancel: CancellationToken::new(),
        })
    }

    /// Shows events to readers. They are in the journal by now.
    pub(crate) fn publish(&self, entries: Vec<Entry>) {
        let Some(offset) = entries.last().map(|entry| entry.offset) else {
            return;
        };
        self.ring().add(entries);
        self.tail.send_modify(|tail| tail.offset = offset);
    }

    /// Nothing more will come from here. Readers that are still here may be slow ones, and the journal has all of
    /// it: only what is small enough to be held for them is.
    pub(crate) fn close(&self) {
        self.ring().end();
        self.tail.send_modify(|tail| tail.open = false);
    }

    /// The events behind `cursor`, for a reader that has a seat; `None` if some of them are no longer held.
    pub(crate) fn after(&self, cursor: u64) -> Option<Vec<Entry>> {
        let is_alone = *self.seats.borrow() == 1;
        let mut ring = self.ring();
        let first = ring.first().unwrap_or_else(|| self.tail.borrow().offset + 1);
        if cursor + 1 < first {
            return None;
        }
        let skip = usize::try_from(cursor + 1 - first).unwrap_or(usize::MAX);
        Some(match is_alone {
            true => ring.take(skip),
            false => ring.skip(skip),
        })
    }

    pub(crate) fn watch_tail(&self) -> watch::Receiver<Tail> {
        self.tail.subscribe()
    }

    pub(crate) fn watch_seats(&self) -> watch::Receiver<usize> {
        self.seats.subscribe()
    }

    pub(crate) fn sit(self: &Arc<Self>) -> Seat {
        self.seats.send_modify(|count| *count += 1);
        Seat(self.clone())
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        // No code panics while it holds the lock, so a poisoned ring is still whole.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Someone listens for as long as this exists.
#[derive(Debug)]
pub(crate) struct Seat(Arc<Live>);

impl Seat {
    pub(crate) fn live(&self) -> &Arc<Live> {
        &self.0
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.seats.send_modify(|count| *count -= 1);
    }
}
