//! Temporary storage of the media of runs. Small media stays in memory; the rest of a run's media shares one
//! anonymous file, which exists as long as some part of it is referenced.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::anonymous_file::AnonymousFile;
use crate::limits;
use crate::spill_writer::SpillWriter;

/// The storage shared by all runs.
#[derive(Clone, Debug)]
pub struct SpillStore(Arc<SpillInner>);

#[derive(Debug)]
struct SpillInner {
    /// If absent, the system's folder for temporary files.
    folder: Option<PathBuf>,
    threshold: u64,
    bytes_max: u64,
    used: AtomicU64,
}

impl Default for SpillStore {
    fn default() -> Self {
        Self::new(None, limits::THRESHOLD_BYTES, limits::STORE_BYTES_MAX)
    }
}

impl SpillStore {
    /// Media of more than `threshold` bytes is stored in `folder`, up to `bytes_max` in total.
    pub fn new(folder: Option<PathBuf>, threshold: u64, bytes_max: u64) -> Self {
        Self(Arc::new(SpillInner {
            folder,
            threshold,
            bytes_max,
            used: AtomicU64::new(0),
        }))
    }

    /// Storage for the media of one run.
    pub fn run_spill(&self) -> RunSpill {
        RunSpill {
            store: self.clone(),
            state: Arc::default(),
        }
    }

    /// An anonymous file, for bytes that are inspected and then discarded.
    pub fn scratch_file(&self) -> io::Result<File> {
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

    pub(crate) fn reserve(&self, bytes: u64) -> io::Result<()> {
        let more = |used: u64| used.checked_add(bytes).filter(|all| *all <= self.0.bytes_max);
        let reserved = self.0.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        reserved
            .map(|_| ())
            .map_err(|_| io::Error::new(io::ErrorKind::StorageFull, "the media store is full"))
    }

    pub(crate) fn release(&self, bytes: u64) {
        self.0.used.fetch_sub(bytes, Ordering::SeqCst);
    }
}

/// The media of one run.
#[derive(Clone, Debug)]
pub struct RunSpill {
    store: SpillStore,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    file: Option<Arc<AnonymousFile>>,
    /// Offset of the next item.
    end: u64,
}

impl RunSpill {
    /// A writer for one media item; one at a time.
    pub fn writer(&self) -> SpillWriter {
        SpillWriter::new(self.clone())
    }

    pub(crate) fn threshold(&self) -> u64 {
        self.store.threshold()
    }

    /// The file, created on first use, and the offset of the next item.
    pub(crate) fn place(&self) -> io::Result<(Arc<AnonymousFile>, u64)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &state.file {
            Some(file) => file.clone(),
            None => Arc::new(AnonymousFile::new(self.store.clone())?),
        };
        state.file = Some(file.clone());
        Ok((file, state.end))
    }

    pub(crate) fn close(&self, end: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.end = state.end.max(end);
    }
}
