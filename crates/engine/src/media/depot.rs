//! Where the media of runs lies while they last. What is small stays in memory; the rest of a run's media
//! goes into one file that has no name: it is there as long as somebody holds a piece of it, and nothing of
//! it is left when the run, the server or the machine stops, however that comes about.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ir::media::{Base64, MediaHandle, MediaBytes, MediaId, MediaSource, StoredRef};
use sha2::{Digest as _, Sha256};

use crate::limits;

/// The room that all runs share.
#[derive(Clone, Debug)]
pub struct Depot(Arc<Room>);

#[derive(Debug)]
struct Room {
    /// The system's folder for temporary files where it is absent.
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
    /// Media of more than `threshold` bytes goes into `folder`, and at most `bytes_max` of all runs.
    pub fn new(folder: Option<PathBuf>, threshold: u64, bytes_max: u64) -> Self {
        Self(Arc::new(Room {
            folder,
            threshold,
            bytes_max,
            used: AtomicU64::new(0),
        }))
    }

    /// A shelf for the media of one run.
    pub fn shelf(&self) -> Shelf {
        Shelf {
            depot: self.clone(),
            state: Arc::default(),
        }
    }

    /// A file without a name, for bytes that are looked at and then gone.
    pub(super) fn scratch(&self) -> io::Result<File> {
        match &self.0.folder {
            Some(folder) => tempfile::tempfile_in(folder),
            None => tempfile::tempfile(),
        }
    }

    /// Media of more bytes lies in a file.
    pub fn threshold(&self) -> u64 {
        self.0.threshold
    }

    /// How many bytes of media are on disk now.
    pub fn used_bytes(&self) -> u64 {
        self.0.used.load(Ordering::SeqCst)
    }

    fn reserve(&self, bytes: u64) -> io::Result<()> {
        let more = |used: u64| used.checked_add(bytes).filter(|all| *all <= self.0.bytes_max);
        let reserved = self.0.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        reserved
            .map(|_| ())
            .map_err(|_| io::Error::new(io::ErrorKind::StorageFull, "there is no room for more media"))
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
    /// Where the next piece begins.
    end: u64,
}

impl Shelf {
    /// Takes the bytes of one piece of media; one at a time.
    pub fn keep(&self) -> Keeping {
        Keeping {
            shelf: self.clone(),
            memory: Vec::new(),
            spilled: None,
            full: Arc::default(),
        }
    }

    /// The file, begun if need be, and where in it the next piece goes.
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

/// One piece of media while it is written.
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
    /// Whether it failed because the depot has no room: to be asked when it is gone.
    pub fn full(&self) -> Arc<AtomicBool> {
        self.full.clone()
    }

    /// How many bytes were written.
    pub fn size_bytes(&self) -> u64 {
        let spilled = self.spilled.as_ref().map(|spilled| spilled.length);
        spilled.unwrap_or(self.memory.len() as u64)
    }

    /// Where the bytes are now. The same bytes have the same id.
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
        Ok(MediaSource::Stored(StoredRef::Handle(MediaHandle::new(id, bytes)?)))
    }

    fn spill(&mut self, bytes: &[u8]) -> io::Result<()> {
        let reserved = self.shelf.depot.reserve(bytes.len() as u64);
        if reserved.is_err() {
            self.full.store(true, Ordering::SeqCst);
        }
        reserved?;
        let Some(spilled) = &mut self.spilled else {
            return Err(io::Error::other("there is no file to write to"));
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

/// A file that nobody else can open. Its room is free again when it is gone.
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

/// One piece of media on the shelf.
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
