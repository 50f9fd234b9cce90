//! EBML elements of WebM, as far as the removal of metadata needs them: position and length. Their content
//! is decoded by a library. A metadata element is overwritten with a void element of the same size.

use std::ops::Range;

use crate::error::Error;
use crate::limits;
use crate::range_writer::Overwrites;
use crate::source::{Source, be_u32, length, read_at};

const HEADER: u32 = 0x1a45_dfa3;
const SEGMENT: u32 = 0x1853_8067;
const CLUSTER: u32 = 0x1f43_b675;
const INFO: u32 = 0x1549_a966;
const TRACKS: u32 = 0x1654_ae6b;
const TRACK: u32 = 0xae;
const CHECK: u32 = 0xbf;
const SEEK_HEAD: u32 = 0x114d_9b74;
const SEEK: u32 = 0x4dbb;
const SEEK_ID: u32 = 0x53ab;
/// Tags, attachments, chapters.
const METADATA: &[u32] = &[0x1254_c367, 0x1941_a469, 0x1043_a770];
/// Title, date, file names of this and of adjacent segments, track name.
const NAMED: &[u32] = &[0x7ba9, 0x4461, 0x7384, 0x3c_83ab, 0x3e_83bb, 0x536e];
/// Direct children of a segment; one of them ends a cluster of unknown length.
const IN_SEGMENT: &[u32] = &[
    CLUSTER,
    INFO,
    TRACKS,
    SEEK_HEAD,
    0x1c53_bb6b,
    0x1254_c367,
    0x1941_a469,
    0x1043_a770,
];

#[derive(Debug)]
struct Element {
    id: u32,
    start: u64,
    body: Range<u64>,
    /// Its length is unknown: it extends to the end.
    open: bool,
}

/// The result of scanning the elements.
#[derive(Debug, Default)]
pub(super) struct ElementScan {
    pub(super) patches: Overwrites,
    pub(super) removed: Vec<&'static str>,
    parts: usize,
}

pub(super) fn walk(source: &mut dyn Source) -> Result<ElementScan, Error> {
    let total = length(source)?;
    let mut walk = ElementScan::default();
    let header = read(source, 0, total)?;
    if header.id != HEADER {
        return Err(Error::undecodable("it has no EBML header"));
    }
    let mut at = header.body.end;
    let mut segments = 0;
    while at < total {
        let element = read(source, at, total)?;
        walk.count()?;
        at = element.body.end;
        if element.id == SEGMENT {
            segments += 1;
            walk.segment(source, element.body)?;
        }
    }
    if segments == 0 {
        return Err(Error::truncated());
    }
    Ok(walk)
}

impl ElementScan {
    fn count(&mut self) -> Result<(), Error> {
        self.parts += 1;
        if self.parts > limits::PARTS_MAX {
            return Err(Error::undecodable("it has too many elements"));
        }
        Ok(())
    }

    fn segment(&mut self, source: &mut dyn Source, space: Range<u64>) -> Result<(), Error> {
        let mut at = space.start;
        while at < space.end {
            let element = read(source, at, space.end)?;
            self.count()?;
            at = match element.id {
                CLUSTER if element.open => self.after_cluster(source, element.body)?,
                INFO => {
                    self.void_names(source, element.body.clone(), 0)?;
                    element.body.end
                }
                TRACKS => {
                    self.void_names(source, element.body.clone(), 0)?;
                    element.body.end
                }
                SEEK_HEAD => {
                    self.index(source, element.body.clone())?;
                    element.body.end
                }
                id => {
                    if METADATA.contains(&id) {
                        self.void(&element, "tags");
                    }
                    element.body.end
                }
            };
        }
        Ok(())
    }

    /// The end of a cluster of unknown length: the next element that cannot be inside it.
    fn after_cluster(&mut self, source: &mut dyn Source, space: Range<u64>) -> Result<u64, Error> {
        let mut at = space.start;
        while at < space.end {
            let element = read(source, at, space.end)?;
            if IN_SEGMENT.contains(&element.id) {
                return Ok(at);
            }
            self.count()?;
            at = element.body.end;
        }
        Ok(at)
    }

    /// Seek entries of removed elements are removed too, because strict readers follow them.
    fn index(&mut self, source: &mut dyn Source, space: Range<u64>) -> Result<(), Error> {
        let mut at = space.start;
        while at < space.end {
            let entry = read(source, at, space.end)?;
            self.count()?;
            at = entry.body.end;
            if entry.id == CHECK || (entry.id == SEEK && is_metadata_entry(source, entry.body.clone())?) {
                self.patch(&entry);
            }
        }
        Ok(())
    }

    /// Removes names and dates of the segment and of its tracks, and the checksum over them.
    fn void_names(&mut self, source: &mut dyn Source, space: Range<u64>, depth: usize) -> Result<(), Error> {
        if depth > limits::DEPTH_MAX {
            return Err(Error::undecodable("its elements are nested too deep"));
        }
        let mut at = space.start;
        while at < space.end {
            let element = read(source, at, space.end)?;
            self.count()?;
            at = element.body.end;
            match element.id {
                CHECK => self.patch(&element),
                TRACK => self.void_names(source, element.body, depth + 1)?,
                id if NAMED.contains(&id) => self.void(&element, "names"),
                _ => {}
            }
        }
        Ok(())
    }

    fn void(&mut self, element: &Element, what: &'static str) {
        self.patch(element);
        if !self.removed.contains(&what) {
            self.removed.push(what);
        }
    }

    /// Overwrites an element with a void element of the same size.
    fn patch(&mut self, element: &Element) {
        let room = element.body.end - element.start;
        let (mut head, body) = match room.checked_sub(9) {
            Some(body) => (vec![0xec], body),
            None => (vec![0xec, 0x80 | u8::try_from(room - 2).unwrap_or(0)], room - 2),
        };
        if head.len() == 1 {
            head.extend((body | 1 << 56).to_be_bytes());
        }
        let from = element.start + head.len() as u64;
        self.patches.bytes(element.start, head);
        self.patches.zeros(from..from + body);
    }
}

/// Whether a seek entry refers to a removed element.
fn is_metadata_entry(source: &mut dyn Source, space: Range<u64>) -> Result<bool, Error> {
    let mut at = space.start;
    while at < space.end {
        let element = read(source, at, space.end)?;
        at = element.body.end;
        let length = element.body.end - element.body.start;
        if element.id == SEEK_ID && length == 4 {
            let name = be_u32(&read_at(source, element.body.start, 4)?, 0);
            return Ok(name.is_some_and(|name| METADATA.contains(&name)));
        }
    }
    Ok(false)
}

/// The element at `at`, in a range that ends at `end`.
fn read(source: &mut dyn Source, at: u64, end: u64) -> Result<Element, Error> {
    let head = read_at(source, at, end.saturating_sub(at).min(12))?;
    let width = usize::try_from(head.first().ok_or_else(Error::truncated)?.leading_zeros()).unwrap_or(8) + 1;
    if width > 4 {
        return Err(Error::undecodable("invalid element id"));
    }
    let name = head.get(..width).ok_or_else(Error::truncated)?;
    let id = name.iter().fold(0, |id, byte| id << 8 | u32::from(*byte));
    let first = *head.get(width).ok_or_else(Error::truncated)?;
    let size_width = usize::try_from(first.leading_zeros()).unwrap_or(8) + 1;
    if size_width > 8 {
        return Err(Error::undecodable("invalid element length"));
    }
    let size = head.get(width..width + size_width).ok_or_else(Error::truncated)?;
    let mask = (1_u64 << (7 * size_width)) - 1;
    let length = size.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)) & mask;
    let body = at + (width + size_width) as u64;
    let open = length == mask;
    if open && !matches!(id, SEGMENT | CLUSTER) {
        return Err(Error::undecodable("an element of unknown length"));
    }
    let stop = if open { Some(end) } else { body.checked_add(length) };
    let stop = stop.filter(|stop| *stop <= end).ok_or_else(Error::truncated)?;
    Ok(Element {
        id,
        start: at,
        body: body..stop,
        open,
    })
}
