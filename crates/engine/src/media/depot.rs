//! Temporary storage of the media of runs. Small media stays in memory; the rest of a run's media shares one
//! anonymous file, which exists as long as some part of it is referenced and leaves nothing behind when the
//! run, the server or the machine stops.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ir::media::{Base64, MediaBytes, MediaHandle, MediaId, MediaSource, StoredRef};
use sha2::{Digest as _, Sha256};

use crate::limits;

/// The storage shared by all runs.
#[derive(Clone, Debug)]
pub struct Depot(Arc<Room>);

#[derive(Debug)]
struct Room {
    /// If absent, the system's folder for temporary files.
    folder: Option<PathBuf>,
    threshold: u64,
    bytes_max: u64,
    used: AtomicU64,
}

impl Default for Depot {
    fn default() -> Self {
        Self::new(None, limits::MEDIA_STORE_THRESHOLD, limits::MEDIA_STORE_BYTES_MAX)
    }
}

impl Depot {
    /// Media of more than `threshold` bytes is stored in `folder`, up to `bytes_max` in total.
    pub fn new(folder: Option<PathBuf>, threshold: u64, bytes_max: u64) -> Self {
        Self(Arc::new(Room {
            folder,
            threshold,
            bytes_max,
            used: AtomicU64::new(0),
        }))
    }

    /// Storage for the media of one run.
    pub fn shelf(&self) -> Shelf {
        Shelf {
            depot: self.clone(),
            state: Arc::default(),
        }
    }

    /// An anonymous file, for bytes that are inspected and then discarded.
    pub(super) fn scratch(&self) -> io::Result<File> {
        match &self.0.folder {
            Some(folder) => tempfile::tempfile_in(folder),
            None => tempfile::tempfile(),
        }
    }

    /// Larger media is stored in a file.
    pub fn threshold(&self) -> u64 {
        self.0.threshold
    }

    /// Bytes of media on disk.
    pub fn used_bytes(&self) -> u64 {
        self.0.used.load(Ordering::SeqCst)
    }

    fn reserve(&self, bytes: u64) -> io::Result<()> {
        let more = |used: u64| used.checked_add(bytes).filter(|all| *all <= self.0.bytes_max);
        let reserved = self.0.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        reserved
            .map(|_| ())
            .map_err(|_| io::Error::new(io::ErrorKind::StorageFull, "the media store is full"))
    }
}

/// The media of one run.
#[derive(Clone, Debug)]
pub struct Shelf {
    depot: Depot,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    file: Option<Arc<Nameless>>,
    /// Offset of the next item.
    end: u64,
}

impl Shelf {
    /// A writer for one media item; one at a time.
    pub fn keep(&self) -> Keeping {
        Keeping {
            shelf: self.clone(),
            memory: Vec::new(),
            spilled: None,
            full: Arc::default(),
        }
    }

    /// The file, created on first use, and the offset of the next item.
    fn place(&self) -> io::Result<(Arc<Nameless>, u64)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &state.file {
            Some(file) => file.clone(),
            None => Arc::new(Nameless {
                file: self.depot.scratch()?,
                depot: self.depot.clone(),
                reserved: AtomicU64::new(0),
            }),
        };
        state.file = Some(file.clone());
        Ok((file, state.end))
    }

    fn close(&self, end: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.end = state.end.max(end);
    }
}

/// One media item while it is written.
#[derive(Debug)]
pub struct Keeping {
    shelf: Shelf,
    memory: Vec<u8>,
    spilled: Option<Spilled>,
    full: Arc<AtomicBool>,
}

struct Spilled {
    file: Arc<Nameless>,
    start: u64,
    length: u64,
    sha256: Sha256,
}

impl fmt::Debug for Spilled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spilled")
            .field("start", &self.start)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl Keeping {
    /// Whether a write failed because the store is full; readable after the writer is dropped.
    pub fn full(&self) -> Arc<AtomicBool> {
        self.full.clone()
    }

    /// Number of bytes written.
    pub fn size_bytes(&self) -> u64 {
        let spilled = self.spilled.as_ref().map(|spilled| spilled.length);
        spilled.unwrap_or(self.memory.len() as u64)
    }

    /// The location of the bytes. Equal bytes have equal ids.
    pub fn finish(self) -> io::Result<MediaSource> {
        let Some(spilled) = self.spilled else {
            return Ok(MediaSource::Inline(Base64::from_bytes(&self.memory)));
        };
        let Spilled {
            file,
            start,
            length,
            sha256,
        } = spilled;
        self.shelf.close(start + length);
        let digest = sha256.finalize();
        let half = digest.iter().take(16);
        let id = MediaId::new(half.fold(0, |bits, byte| bits << 8 | u128::from(*byte)));
        let bytes = Arc::new(Part { file, start, length });
        Ok(MediaSource::Stored(StoredRef::Handle(MediaHandle::new(
            id, bytes,
        )?)))
    }

    fn spill(&mut self, bytes: &[u8]) -> io::Result<()> {
        let reserved = self.shelf.depot.reserve(bytes.len() as u64);
        if reserved.is_err() {
            self.full.store(true, Ordering::SeqCst);
        }
        reserved?;
        let Some(spilled) = &mut self.spilled else {
            return Err(io::Error::other("the media file is not open"));
        };
        spilled
            .file
            .reserved
            .fetch_add(bytes.len() as u64, Ordering::SeqCst);
        spilled.file.write_at(spilled.start + spilled.length, bytes)?;
        spilled.sha256.update(bytes);
        spilled.length += bytes.len() as u64;
        Ok(())
    }
}

impl Write for Keeping {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.spilled.is_none() {
            let all = self.memory.len() + bytes.len();
            if all as u64 <= self.shelf.depot.threshold() {
                self.memory.extend_from_slice(bytes);
                return Ok(bytes.len());
            }
            let (file, start) = self.shelf.place()?;
            self.spilled = Some(Spilled {
                file,
                start,
                length: 0,
                sha256: Sha256::new(),
            });
            let begun = std::mem::take(&mut self.memory);
            self.spill(&begun)?;
        }
        self.spill(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file that no other process can open. Its reservation is released on drop.
#[derive(Debug)]
struct Nameless {
    file: File,
    depot: Depot,
    reserved: AtomicU64,
}

impl Drop for Nameless {
    fn drop(&mut self) {
        let reserved = self.reserved.load(Ordering::SeqCst);
        self.depot.0.used.fetch_sub(reserved, Ordering::SeqCst);
    }
}

#[cfg(unix)]
impl Nameless {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(&self.file, buffer, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.file, bytes, offset)
    }
}

#[cfg(windows)]
impl Nameless {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(&self.file, buffer, offset)
    }

    fn write_at(&self, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = std::os::windows::fs::FileExt::seek_write(&self.file, bytes, offset)?;
            offset += written as u64;
            bytes = bytes.get(written..).unwrap_or_default();
        }
        Ok(())
    }
}

/// A stored media item.
#[derive(Debug)]
struct Part {
    file: Arc<Nameless>,
    start: u64,
    length: u64,
}

impl MediaBytes for Part {
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
