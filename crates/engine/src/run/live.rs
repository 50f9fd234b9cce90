//! A run in progress, as its readers see it: the latest events, how far the journal has come, and a
//! count of who is listening. Readers that fall behind the latest events read the journal instead, so
//! a slow one costs nothing.

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
}

impl Ring {
    /// Lets the oldest go until there are no more than so many bytes.
    fn shrink(&mut self, bytes_max: usize) {
        while self.entries.len() > limits::RING_EVENTS_MAX || self.bytes > bytes_max {
            let Some(old) = self.entries.pop_front() else {
                return;
            };
            self.bytes -= old.event.body.len();
        }
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
        {
            let mut ring = self.ring();
            ring.bytes += entries.iter().map(|entry| entry.event.body.len()).sum::<usize>();
            ring.entries.extend(entries);
            ring.shrink(limits::RING_BYTES_MAX);
        }
        self.tail.send_modify(|tail| tail.offset = offset);
    }

    /// Nothing more will come from here. Readers that are still here may be slow ones, and the journal has all of
    /// it: only what is small enough to be held for them is.
    pub(crate) fn close(&self) {
        self.ring().shrink(limits::RING_ENDED_BYTES_MAX);
        self.tail.send_modify(|tail| tail.open = false);
    }

    /// The events behind `cursor`; `None` if some of them are no longer held.
    pub(crate) fn after(&self, cursor: u64) -> Option<Vec<Entry>> {
        let ring = self.ring();
        let first = match ring.entries.front() {
            Some(entry) => entry.offset,
            None => self.tail.borrow().offset + 1,
        };
        if cursor + 1 < first {
            return None;
        }
        let skip = usize::try_from(cursor + 1 - first).unwrap_or(usize::MAX);
        Some(ring.entries.iter().skip(skip).cloned().collect())
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
