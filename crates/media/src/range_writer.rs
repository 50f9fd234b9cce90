//! Writes a file as a list of segments: ranges copied from a source, literal bytes, and zeros in place of
//! removed data that must keep its size. The file is streamed, not buffered as a whole.

use std::io::{self, Read, SeekFrom, Write};
use std::ops::Range;

use crate::error::Error;
use crate::source::Source;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    Copy(Range<u64>),
    Literal(Vec<u8>),
    Zeros(u64),
}

/// Segments in order; adjacent copies are merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SegmentList(Vec<Segment>);

impl SegmentList {
    pub(crate) fn copy(&mut self, range: Range<u64>) {
        match self.0.last_mut() {
            _ if range.is_empty() => {}
            Some(Segment::Copy(last)) if last.end == range.start => last.end = range.end,
            _ => self.0.push(Segment::Copy(range)),
        }
    }

    pub(crate) fn put(&mut self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.0.push(Segment::Literal(bytes));
        }
    }

    pub(crate) fn zeros(&mut self, count: u64) {
        if count > 0 {
            self.0.push(Segment::Zeros(count));
        }
    }

    pub(crate) fn append(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    pub(crate) fn write(&self, source: &mut dyn Source, out: &mut dyn Write) -> Result<(), Error> {
        for piece in &self.0 {
            match piece {
                Segment::Copy(range) => {
                    source.seek(SeekFrom::Start(range.start))?;
                    let length = range.end.saturating_sub(range.start);
                    let copied = io::copy(&mut (&mut *source).take(length), out)?;
                    if copied < length {
                        return Err(Error::truncated());
                    }
                }
                Segment::Literal(bytes) => out.write_all(bytes)?,
                Segment::Zeros(count) => {
                    io::copy(&mut io::repeat(0).take(*count), out)?;
                }
            }
        }
        Ok(())
    }
}

/// In-place changes, converted into segments that copy everything between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overwrites(Vec<(u64, Overwrite)>);

#[derive(Clone, Debug)]
enum Overwrite {
    Bytes(Vec<u8>),
    Zeros(u64),
}

impl Overwrites {
    pub(crate) fn bytes(&mut self, at: u64, bytes: Vec<u8>) {
        self.0.push((at, Overwrite::Bytes(bytes)));
    }

    pub(crate) fn zeros(&mut self, range: Range<u64>) {
        self.0.push((
            range.start,
            Overwrite::Zeros(range.end.saturating_sub(range.start)),
        ));
    }

    /// The file of `length` bytes with all changes applied. Changes inside earlier ones are skipped.
    pub(crate) fn apply(mut self, length: u64) -> SegmentList {
        self.0.sort_by_key(|(at, _)| *at);
        let mut pieces = SegmentList::default();
        let mut done = 0;
        for (at, patch) in self.0 {
            if at < done {
                continue;
            }
            pieces.copy(done..at);
            done = match patch {
                Overwrite::Bytes(bytes) => {
                    let end = at + bytes.len() as u64;
                    pieces.put(bytes);
                    end
                }
                Overwrite::Zeros(count) => {
                    pieces.zeros(count);
                    at + count
                }
            };
        }
        pieces.copy(done..length);
        pieces
    }
}
