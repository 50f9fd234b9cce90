//! Media whose bytes lie outside of memory, together with the way to them. No document can name such media:
//! whoever has the value may read the bytes, and when nobody has it any more they are gone. How they are
//! kept is the business of whoever keeps them.

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use crate::media::{Base64, MediaId};

/// Bytes that can be read at any place by any number of readers at once.
pub trait MediaBytes: Send + Sync + fmt::Debug {
    fn size_bytes(&self) -> u64;

    /// Fills the beginning of `buffer` from `offset` on and says how much of it; 0 only at the end.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

/// Bytes that are in memory after all.
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

/// How many bytes are known without a look at the rest.
const HEAD_BYTES: u64 = 48;

#[derive(Clone, Debug)]
pub struct MediaHandle {
    id: MediaId,
    head: Vec<u8>,
    bytes: Arc<dyn MediaBytes>,
}

impl PartialEq for MediaHandle {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for MediaHandle {}

impl MediaHandle {
    /// The id stands in documents that mention this media; it leads nobody to the bytes.
    pub fn new(id: MediaId, bytes: Arc<dyn MediaBytes>) -> io::Result<Self> {
        let mut head = Vec::new();
        let held = Self {
            id,
            head: Vec::new(),
            bytes,
        };
        held.reader().take(HEAD_BYTES).read_to_end(&mut head)?;
        Ok(Self { head, ..held })
    }

    pub const fn id(&self) -> MediaId {
        self.id
    }

    pub fn size_bytes(&self) -> u64 {
        self.bytes.size_bytes()
    }

    /// The first bytes, for a look at what they are.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// From the beginning, apart from all other readers.
    pub fn reader(&self) -> MediaReader {
        MediaReader {
            bytes: self.bytes.clone(),
            offset: 0,
        }
    }

    /// All of it in memory, for those who cannot do otherwise.
    pub fn to_base64(&self) -> io::Result<Base64> {
        let mut bytes = Vec::new();
        self.reader().read_to_end(&mut bytes)?;
        Ok(Base64::from_bytes(&bytes))
    }
}

/// One way through held bytes.
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
