//! Any interleaving of events and readers: each reader gets every event once, in order, and a single reader
//! empties the ring buffer.

use std::sync::Arc;

use proptest::prelude::*;
use tenancy::Tenant;

use super::{ReaderGuard, RunBroadcast};
use crate::limits;
use crate::port::{EncodedEvent, EventKind, JournalEntry};

#[derive(Clone, Debug)]
enum Act {
    /// Number of events, and bytes of each.
    Publish(usize, usize),
    Join,
    /// One of the readers polls; after an empty result it would wait.
    Poll(usize),
    Leave(usize),
    Close,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (1_usize..70, prop_oneof![9 => 0_usize..200, 1 => Just(80_000)]).prop_map(|(count, bytes)| Act::Publish(count, bytes)),
        2 => Just(Act::Join),
        6 => (0_usize..4).prop_map(Act::Poll),
        1 => (0_usize..4).prop_map(Act::Leave),
        1 => Just(Act::Close),
    ]
}

struct Reader {
    reader: ReaderGuard,
    cursor: u64,
}

impl Reader {
    /// Like a subscription: from the ring buffer, else from the journal.
    fn poll(&mut self, journal: &[JournalEntry]) -> usize {
        let start = usize::try_from(self.cursor).unwrap();
        let entries = match self.reader.live().events_after(self.cursor) {
            Some(entries) => entries,
            None => journal[start..]
                .iter()
                .take(limits::PAGE_ENTRIES_MAX)
                .cloned()
                .collect(),
        };
        assert_eq!(entries, &journal[start..start + entries.len()]);
        assert!(start == journal.len() || !entries.is_empty());
        self.cursor += entries.len() as u64;
        entries.len()
    }
}

fn entries(from: usize, count: usize, bytes: usize) -> Vec<JournalEntry> {
    let offsets = (from as u64 + 1..).take(count);
    let entries = offsets.map(|offset| JournalEntry {
        offset,
        event: EncodedEvent {
            kind: EventKind::Chunk,
            seq: Some(offset),
            body: Arc::from("x".repeat(bytes)),
        },
    });
    entries.collect()
}

fn play(acts: Vec<Act>) {
    let live = RunBroadcast::new(Tenant::local(), 0);
    let mut journal: Vec<JournalEntry> = Vec::new();
    let mut readers: Vec<Reader> = Vec::new();
    for act in acts {
        match act {
            Act::Publish(count, bytes) => {
                let new = entries(journal.len(), count, bytes);
                journal.extend(new.clone());
                live.publish(new);
            }
            Act::Join => readers.push(Reader {
                reader: live.add_reader(),
                cursor: 0,
            }),
            Act::Poll(at) => {
                let single = readers.len() == 1;
                if let Some(reader) = readers.get_mut(at) {
                    let waits = reader.poll(&journal) == 0;
                    let ring = live.ring();
                    assert!(!(single && waits) || (ring.entries.capacity(), ring.bytes) == (0, 0));
                }
            }
            Act::Leave(at) if at < readers.len() => drop(readers.remove(at)),
            Act::Leave(_) => {}
            Act::Close => live.close(),
        }
        let ring = live.ring();
        let bytes: usize = ring.entries.iter().map(|entry| entry.event.body.len()).sum();
        assert_eq!(ring.bytes, bytes);
        assert!(bytes <= limits::RING_BYTES_MAX && ring.entries.len() <= limits::RING_EVENTS_MAX);
    }
    for reader in &mut readers {
        while reader.poll(&journal) > 0 {}
        assert_eq!(reader.cursor, journal.len() as u64);
    }
}

proptest! {
    #[test]
    fn every_reader_gets_every_event_once(acts in prop::collection::vec(act(), 1..60)) {
        play(acts);
    }
}

/// A terminal event that the journal rejected is still delivered to readers that join before the run is
/// removed.
#[test]
fn newest_event_stays_for_the_next_reader() {
    let live = RunBroadcast::new(Tenant::local(), 0);
    live.publish(entries(0, 2, 10));
    let first = live.add_reader();
    assert_eq!(live.events_after(0).map(|entries| entries.len()), Some(2));
    drop(first);
    let _second = live.add_reader();
    assert_eq!(live.events_after(0), None);
    assert_eq!(live.events_after(1).map(|entries| entries.len()), Some(1));
    assert_eq!(live.events_after(2), Some(Vec::new()));
    live.close();
    assert_eq!(live.events_after(1).map(|entries| entries.len()), Some(1));
}
