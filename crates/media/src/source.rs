//! Bounded random-access reads of a file. A file that ends too early is reported as truncated.

use std::io::{ErrorKind, Read, Seek, SeekFrom};

use crate::error::Error;
use crate::limits;

/// Bytes with random access: a file, or memory in tests.
pub trait Source: Read + Seek + Send + Sync {}

impl<T: Read + Seek + Send + Sync> Source for T {}

pub(crate) fn length(source: &mut dyn Source) -> Result<u64, Error> {
    Ok(source.seek(SeekFrom::End(0))?)
}

/// Exactly `length` bytes from `offset` on.
pub(crate) fn read_at(source: &mut dyn Source, offset: u64, length: u64) -> Result<Vec<u8>, Error> {
    if length > limits::TABLE_BYTES_MAX {
        return Err(Error::undecodable("a header exceeds the size limit"));
    }
    source.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    source.take(length).read_to_end(&mut bytes)?;
    if (bytes.len() as u64) < length {
        return Err(Error::truncated());
    }
    Ok(bytes)
}

/// The first bytes, at most [`HEAD_BYTES`](limits::HEAD_BYTES).
pub(crate) fn head(source: &mut dyn Source) -> Result<Vec<u8>, Error> {
    source.rewind()?;
    let mut bytes = Vec::new();
    source.take(limits::HEAD_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The whole file, if it is no larger than `allowed`.
pub(crate) fn whole(source: &mut dyn Source, allowed: u64) -> Result<Vec<u8>, Error> {
    source.rewind()?;
    let mut bytes = Vec::new();
    source.take(allowed.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > allowed {
        return Err(Error::undecodable(
            "the file exceeds the size limit for inspection",
        ));
    }
    Ok(bytes)
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::UnexpectedEof => Self::truncated(),
            _ => Self::Unreadable(error.to_string()),
        }
    }
}

/// Integers at a position of a slice; `None` after its end.
pub(crate) fn be_u16(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

pub(crate) fn be_u32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_be_bytes)
}

pub(crate) fn be_u64(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_be_bytes)
}

pub(crate) fn le_u32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    let piece = bytes.get(at..at.checked_add(N)?)?;
    piece.try_into().ok()
}
