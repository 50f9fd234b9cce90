//! Ogg, page by page. The second packet of a stream contains its comments: it is overwritten with a blank
//! vendor string of the same length, so that no page moves, and the page checksums are recomputed.

use std::collections::HashMap;

use super::RetainedAudio;
use crate::error::Error;
use crate::limits;
use crate::range_writer::Overwrites;
use crate::source::{Source, le_u32, length, read_at};

const BEGINS: u8 = 2;
const ENDS: u8 = 4;

/// Parse state of a logical stream.
#[derive(Default)]
struct Stream {
    /// Number of completed packets.
    packets: usize,
    /// Location of the comment packet, page by page.
    comment: Vec<Span>,
    comment_bytes: Vec<u8>,
    ended: bool,
}

struct Span {
    page: usize,
    at: u64,
    length: usize,
}

/// A modified page, for recomputing its checksum.
struct Page {
    at: u64,
    bytes: Vec<u8>,
}

pub(super) fn walk(source: &mut dyn Source) -> Result<RetainedAudio, Error> {
    let total = length(source)?;
    let mut streams: HashMap<u32, Stream> = HashMap::new();
    let mut touched: Vec<Page> = Vec::new();
    let mut at = 0;
    let mut parts = 0;
    while at < total {
        parts += 1;
        if parts > limits::PARTS_MAX {
            return Err(Error::undecodable("it has too many pages"));
        }
        let head = read_at(source, at, 27)?;
        if !head.starts_with(b"OggS\0") {
            return Err(Error::undecodable("invalid page header"));
        }
        let (flags, segments) = (head[5], usize::from(head[26]));
        let serial = le_u32(&head, 14).unwrap_or(0);
        let table = read_at(source, at + 27, segments as u64)?;
        let body_at = at + 27 + segments as u64;
        let body_length: u64 = table.iter().map(|lace| u64::from(*lace)).sum();
        let end = body_at + body_length;
        if end > total {
            return Err(Error::truncated());
        }
        if flags & BEGINS != 0 {
            streams.insert(serial, Stream::default());
        }
        let Some(stream) = streams.get_mut(&serial) else {
            return Err(Error::undecodable("a page of a stream that was not started"));
        };
        stream.ended |= flags & ENDS != 0;
        if stream.packets < 2 {
            let bytes = read_at(source, at, end - at)?;
            stream.gather(&table, &bytes, body_at - at, touched.len());
            touched.push(Page { at, bytes });
        }
        at = end;
    }
    if streams.is_empty() || !streams.values().all(|stream| stream.ended) {
        return Err(Error::truncated());
    }
    clean(&streams, touched, total)
}

impl Stream {
    /// Follows packets through a page and records which bytes belong to the second packet.
    fn gather(&mut self, table: &[u8], page: &[u8], body: u64, index: usize) {
        let mut at = usize::try_from(body).unwrap_or(usize::MAX);
        for lace in table {
            let length = usize::from(*lace);
            if self.packets == 1 && self.comment_bytes.len() < limits::TABLE_BYTES_MAX as usize {
                let bytes = page.get(at..at + length).unwrap_or_default();
                self.comment_bytes.extend(bytes);
                self.comment.push(Span {
                    page: index,
                    at: at as u64,
                    length,
                });
            }
            at += length;
            if *lace < 255 {
                self.packets += 1;
            }
        }
    }
}

fn clean(streams: &HashMap<u32, Stream>, mut touched: Vec<Page>, total: u64) -> Result<RetainedAudio, Error> {
    let mut changed = Vec::new();
    for stream in streams.values() {
        let Some(mut fresh) = blank(&stream.comment_bytes).map(Vec::into_iter) else {
            return Err(Error::undecodable("its comment packet is not recognised"));
        };
        for span in &stream.comment {
            let from = usize::try_from(span.at).unwrap_or(usize::MAX);
            let page = touched.get_mut(span.page);
            if let Some(slot) = page.and_then(|page| page.bytes.get_mut(from..from + span.length)) {
                for byte in slot {
                    *byte = fresh.next().unwrap_or(0);
                }
                changed.push(span.page);
            }
        }
    }
    changed.sort_unstable();
    changed.dedup();
    let mut patches = Overwrites::default();
    for index in changed {
        if let Some(page) = touched.get_mut(index) {
            write_checksum(&mut page.bytes);
            patches.bytes(page.at, std::mem::take(&mut page.bytes));
        }
    }
    Ok(RetainedAudio {
        pieces: patches.apply(total),
        removed: vec!["comments"],
    })
}

/// An empty comment packet of the same length; `None` if this is not a comment packet.
fn blank(packet: &[u8]) -> Option<Vec<u8>> {
    let (magic, tail): (&[u8], &[u8]) = if packet.starts_with(b"\x03vorbis") {
        (b"\x03vorbis", b"\x01")
    } else if packet.starts_with(b"OpusTags") {
        (b"OpusTags", b"")
    } else if le_u32(packet, 0).is_some_and(|vendor| vendor as usize <= packet.len()) {
        // Speex and other codecs without a magic number.
        (b"", b"")
    } else {
        return None;
    };
    let room = packet.len().checked_sub(magic.len() + 8 + tail.len())?;
    let mut fresh = Vec::from(magic);
    fresh.extend(u32::try_from(room).ok()?.to_le_bytes());
    fresh.resize(fresh.len() + room, b' ');
    fresh.extend([0; 4]);
    fresh.extend(tail);
    Some(fresh)
}

/// Recomputes a page's checksum.
fn write_checksum(page: &mut [u8]) {
    if let Some(check) = page.get_mut(22..26) {
        check.fill(0);
    }
    let sum = page.iter().fold(0, |sum: u32, byte| {
        let mut sum = sum ^ u32::from(*byte) << 24;
        for _ in 0..8 {
            sum = sum << 1 ^ if sum >> 31 == 1 { 0x04c1_1db7 } else { 0 };
        }
        sum
    });
    if let Some(check) = page.get_mut(22..26) {
        check.copy_from_slice(&sum.to_le_bytes());
    }
}
