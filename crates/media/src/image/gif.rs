//! GIF, block by block. Retained: frames, their timing and the repeat count. The first frame can be
//! extracted without decoding.

use super::ContainerScan;
use crate::error::Error;
use crate::limits;
use crate::range_writer::SegmentList;

pub(super) fn walk(bytes: &[u8]) -> Result<ContainerScan, Error> {
    let mut walk = ContainerScan::default();
    let screen = *bytes.get(10).ok_or_else(Error::truncated)?;
    let mut at = 13 + table(screen);
    let mut first = SegmentList::default();
    walk.pieces.copy(0..at as u64);
    first.copy(0..at as u64);
    for _ in 0..limits::PARTS_MAX {
        let start = at;
        match *bytes.get(at).ok_or_else(Error::truncated)? {
            0x3b => {
                let range = start as u64..start as u64 + 1;
                walk.pieces.copy(range.clone());
                first.copy(range.clone());
                walk.end = range.end;
                if walk.frames == 0 {
                    return Err(Error::undecodable("it contains no image"));
                }
                walk.first = (walk.frames > 1).then_some(first);
                return Ok(walk);
            }
            0x2c => {
                let flags = *bytes.get(at + 9).ok_or_else(Error::truncated)?;
                at = after_blocks(bytes, at + 10 + table(flags) + 1)?;
                walk.frames += 1;
                walk.pieces.copy(start as u64..at as u64);
                if walk.frames == 1 {
                    first.copy(start as u64..at as u64);
                }
            }
            0x21 => {
                let label = *bytes.get(at + 1).ok_or_else(Error::truncated)?;
                at = after_blocks(bytes, at + 2)?;
                let range = start as u64..at as u64;
                match label {
                    0xf9 => {
                        walk.pieces.copy(range.clone());
                        if walk.frames == 0 {
                            first.copy(range);
                        }
                    }
                    0xff if repeats(bytes, start) => walk.pieces.copy(range),
                    0xff => walk.remove("application data"),
                    0xfe => walk.remove("comment"),
                    _ => walk.remove("text"),
                }
            }
            _ => return Err(Error::undecodable("unknown block type")),
        }
    }
    Err(Error::undecodable("it has too many blocks"))
}

/// Size in bytes of the colour table declared by these flags.
fn table(flags: u8) -> usize {
    if flags & 0x80 == 0 {
        0
    } else {
        3 << ((flags & 7) + 1)
    }
}

/// The position after a sequence of sub-blocks.
fn after_blocks(bytes: &[u8], from: usize) -> Result<usize, Error> {
    let mut at = from;
    loop {
        let length = usize::from(*bytes.get(at).ok_or_else(Error::truncated)?);
        at += 1 + length;
        if length == 0 {
            return Ok(at);
        }
    }
}

/// Whether this is the repeat-count extension, under either of its two application names.
fn repeats(bytes: &[u8], start: usize) -> bool {
    let body = bytes.get(start + 2..start + 19).unwrap_or_default();
    (body.starts_with(b"\x0bNETSCAPE2.0\x03\x01") || body.starts_with(b"\x0bANIMEXTS1.0\x03\x01"))
        && body.get(16) == Some(&0)
}
