//! Boxes of ISO base media files (MP4, MOV, M4A): length, type and content. Every box must end within its
//! parent.

use std::ops::Range;

use crate::error::Error;
use crate::source::{Source, be_u32, be_u64, read_at};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mp4Box {
    pub(super) kind: [u8; 4],
    /// Position of its length field.
    pub(super) start: u64,
    pub(super) body: Range<u64>,
}

/// The box at `at`, in a range that ends at `end`.
pub(super) fn read(source: &mut dyn Source, at: u64, end: u64) -> Result<Mp4Box, Error> {
    let head = read_at(source, at, 8)?;
    let kind = [head[4], head[5], head[6], head[7]];
    let (header, length) = match be_u32(&head, 0).unwrap_or(0) {
        0 => (8, end.saturating_sub(at)),
        1 => (16, be_u64(&read_at(source, at + 8, 8)?, 0).unwrap_or(0)),
        length => (8, u64::from(length)),
    };
    let stop = at.checked_add(length).filter(|stop| *stop <= end);
    let stop = stop.ok_or_else(Error::truncated)?;
    if length < header {
        return Err(Error::undecodable("a box is shorter than its header"));
    }
    Ok(Mp4Box {
        kind,
        start: at,
        body: at + header..stop,
    })
}

/// The boxes of a range, in order.
pub(super) fn children(
    source: &mut dyn Source,
    space: Range<u64>,
    budget: &mut usize,
) -> Result<Vec<Mp4Box>, Error> {
    let mut found = Vec::new();
    let mut at = space.start;
    // Some lists of old files end with four zero bytes.
    while at + 8 <= space.end {
        *budget = budget
            .checked_sub(1)
            .ok_or_else(|| Error::undecodable("it has too many boxes"))?;
        let one = read(source, at, space.end)?;
        at = one.body.end;
        found.push(one);
    }
    Ok(found)
}
