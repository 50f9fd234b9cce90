//! Writes one media item: into memory up to the threshold of its store, then into the file of its run.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ir::media::{Base64, Checksum, MediaHandle, MediaSource};
use sha2::{Digest as _, Sha256};

use crate::anonymous_file::{AnonymousFile, FileRange};
use crate::spill_store::RunSpill;

#[derive(Debug)]
pub struct SpillWriter {
    run: RunSpill,
    memory: Vec<u8>,
    disk: Option<DiskState>,
    full: Arc<AtomicBool>,
}

struct DiskState {
    file: Arc<AnonymousFile>,
    start: u64,
    length: u64,
    sha256: Sha256,
}

impl fmt::Debug for DiskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskState")
            .field("start", &self.start)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl SpillWriter {
    pub(crate) fn new(run: RunSpill) -> Self {
        Self {
            run,
            memory: Vec::new(),
            disk: None,
            full: Arc::default(),
        }
    }

    /// Whether a write failed because the store is full; readable after the writer is dropped.
    pub fn full(&self) -> Arc<AtomicBool> {
        self.full.clone()
    }

    /// Number of bytes written.
    pub fn size_bytes(&self) -> u64 {
        let disk = self.disk.as_ref().map(|disk| disk.length);
        disk.unwrap_or(self.memory.len() as u64)
    }

    /// The location of the bytes.
    pub fn finish(self) -> io::Result<MediaSource> {
        let Some(disk) = self.disk else {
            return Ok(MediaSource::Inline(Base64::from_bytes(&self.memory)));
        };
        let DiskState {
            file,
            start,
            length,
            sha256,
        } = disk;
        self.run.close(start + length);
        let checksum = Checksum::from_sha256(&sha256.finalize());
        let bytes = Arc::new(FileRange { file, start, length });
        Ok(MediaSource::Handle(MediaHandle::new(checksum, bytes)?))
    }

    fn write_to(disk: &mut DiskState, bytes: &[u8]) -> io::Result<()> {
        disk.file.reserve(bytes.len() as u64)?;
        disk.file.write_at(disk.start + disk.length, bytes)?;
        disk.sha256.update(bytes);
        disk.length += bytes.len() as u64;
        Ok(())
    }
}

impl Write for SpillWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let all = self.memory.len() + bytes.len();
        if self.disk.is_none() && all as u64 <= self.run.threshold() {
            self.memory.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        let written = match &mut self.disk {
            Some(disk) => Self::write_to(disk, bytes),
            None => {
                let (file, start) = self.run.place()?;
                let disk = self.disk.insert(DiskState {
                    file,
                    start,
                    length: 0,
                    sha256: Sha256::new(),
                });
                let begun = std::mem::take(&mut self.memory);
                Self::write_to(disk, &begun).and_then(|()| Self::write_to(disk, bytes))
            }
        };
        if let Err(error) = &written
            && error.kind() == io::ErrorKind::StorageFull
        {
            self.full.store(true, Ordering::SeqCst);
        }
        written.map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
