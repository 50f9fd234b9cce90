//! A file that no other process can open, shared by several media items. It leaves nothing behind when the
//! run, the server or the machine stops.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ir::media::MediaBytes;

use crate::spill_store::SpillStore;

/// Its reservation in the store is released on drop.
#[derive(Debug)]
pub(crate) struct AnonymousFile {
    file: File,
    store: SpillStore,
    reserved: AtomicU64,
}

impl AnonymousFile {
    pub(crate) fn new(store: SpillStore) -> io::Result<Self> {
        Ok(Self {
            file: store.scratch_file()?,
            store,
            reserved: AtomicU64::new(0),
        })
    }

    /// Counts the bytes in the store before they are written.
    pub(crate) fn reserve(&self, bytes: u64) -> io::Result<()> {
        self.store.reserve(bytes)?;
        self.reserved.fetch_add(bytes, Ordering::SeqCst);
        Ok(())
    }
}

impl Drop for AnonymousFile {
    fn drop(&mut self) {
        self.store.release(self.reserved.load(Ordering::SeqCst));
    }
}

#[cfg(unix)]
impl AnonymousFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(&self.file, buffer, offset)
    }

    pub(crate) fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.file, bytes, offset)
    }
}

#[cfg(windows)]
impl AnonymousFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(&self.file, buffer, offset)
    }

    pub(crate) fn write_at(&self, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = std::os::windows::fs::FileExt::seek_write(&self.file, bytes, offset)?;
            offset += written as u64;
            bytes = bytes.get(written..).unwrap_or_default();
        }
        Ok(())
    }
}

/// The bytes of one item.
#[derive(Debug)]
pub(crate) struct FileRange {
    pub(crate) file: Arc<AnonymousFile>,
    pub(crate) start: u64,
    pub(crate) length: u64,
}

impl MediaBytes for FileRange {
    fn size_bytes(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.length.saturating_sub(offset);
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let buffer = buffer.get_mut(..wanted).unwrap_or_default();
        self.file.read_at(self.start + offset, buffer)
    }
}
