//! A handle of media whose bytes are stored outside the document, with access to them. It has no id: only
//! owners of the value can read the bytes, which are freed when the last owner drops it. Storage is defined by
//! the implementation of [`MediaBytes`].

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::media::{Base64, Checksum};

/// Bytes with random access for any number of concurrent readers.
pub trait MediaBytes: Send + Sync + fmt::Debug {
    fn size_bytes(&self) -> u64;

    /// Reads from `offset` into the start of `buffer` and returns the number of bytes read; 0 only at the
    /// end.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

/// Bytes in memory.
impl MediaBytes for Vec<u8> {
    fn size_bytes(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let mut left = self.get(from..).unwrap_or_default();
        left.read(buffer)
    }
}

/// Bytes at the start that are cached in the handle.
const HEAD_BYTES: u64 = 48;

#[derive(Clone, Debug)]
pub struct MediaHandle {
    checksum: Checksum,
    head: Vec<u8>,
    bytes: Arc<dyn MediaBytes>,
}

impl PartialEq for MediaHandle {
    fn eq(&self, other: &Self) -> bool {
        self.checksum == other.checksum
    }
}

impl Eq for MediaHandle {}

impl MediaHandle {
    /// Handles with the same checksum are equal.
    pub fn new(checksum: Checksum, bytes: Arc<dyn MediaBytes>) -> io::Result<Self> {
        let mut head = Vec::new();
        let handle = Self {
            checksum,
            head: Vec::new(),
            bytes,
        };
        handle.reader().take(HEAD_BYTES).read_to_end(&mut head)?;
        Ok(Self { head, ..handle })
    }

    /// A handle of bytes in memory.
    pub fn from_bytes(bytes: Vec<u8>) -> io::Result<Self> {
        Self::new(Checksum::from_sha256(&Sha256::digest(&bytes)), Arc::new(bytes))
    }

    /// The SHA-256 of the bytes.
    pub const fn checksum(&self) -> &Checksum {
        &self.checksum
    }

    pub fn size_bytes(&self) -> u64 {
        self.bytes.size_bytes()
    }

    /// The first bytes, for type detection.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// A new reader from the start, independent of other readers.
    pub fn reader(&self) -> MediaReader {
        MediaReader {
            bytes: self.bytes.clone(),
            offset: 0,
        }
    }

    /// All bytes in memory, for encoders that require them.
    pub fn to_base64(&self) -> io::Result<Base64> {
        let mut bytes = Vec::new();
        self.reader().read_to_end(&mut bytes)?;
        Ok(Base64::from_bytes(&bytes))
    }
}

/// An independent read position in the bytes of a handle.
#[derive(Debug)]
pub struct MediaReader {
    bytes: Arc<dyn MediaBytes>,
    offset: u64,
}

impl Read for MediaReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.bytes.read_at(self.offset, buffer)?;
        self.offset += read as u64;
        Ok(read)
    }
}

impl Seek for MediaReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let there = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(offset) => self.bytes.size_bytes().checked_add_signed(offset),
            SeekFrom::Current(offset) => self.offset.checked_add_signed(offset),
        };
        self.offset = there.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.offset)
    }
}
