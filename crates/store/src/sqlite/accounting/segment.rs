//! A file of the accounting log. It is locked by its process, so that no other process takes it for one that a
//! killed process has left.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::record::Record;
use crate::limits;

/// Part of the name, after that of the database.
const MARK: &str = "-accounts-";

/// What a segment writes to. Tests replace the file.
pub(super) trait LogFile: Send {
    /// Appends all of the text or none of it.
    fn append(&mut self, text: &[u8]) -> io::Result<()>;
}

pub(super) struct LogSegment {
    path: PathBuf,
    file: Box<dyn LogFile>,
}

impl LogSegment {
    pub(super) fn create(database: &Path) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut options = OpenOptions::new();
        options.create_new(true).append(true);
        // It contains the names of clients and models.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let (path, file) = loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let mut path = database.as_os_str().to_owned();
            path.push(format!("{MARK}{}-{count}", std::process::id()));
            let path = PathBuf::from(path);
            match options.open(&path) {
                // A killed process had the same id.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                opened => break (path, opened?),
            }
        };
        file.lock()?;
        let file = Box::new(DiskFile { file, bytes: 0 });
        Ok(Self { path, file })
    }

    #[cfg(test)]
    pub(super) fn on(file: Box<dyn LogFile>) -> Self {
        Self {
            path: PathBuf::new(),
            file,
        }
    }

    pub(super) fn append(&mut self, text: &[u8]) -> io::Result<()> {
        self.file.append(text)
    }

    /// Removes the file. One that stays is applied again, which changes nothing.
    pub(super) fn remove(self) {
        fs::remove_file(&self.path).ok();
    }

    /// The segments that killed processes have left, oldest first, with their records.
    pub(super) fn orphans(database: &Path) -> io::Result<Vec<(Self, Vec<Record>)>> {
        let Some(name) = database.file_name().and_then(|name| name.to_str()) else {
            return Ok(Vec::new());
        };
        let folder = database.parent().filter(|folder| !folder.as_os_str().is_empty());
        let prefix = format!("{name}{MARK}");
        let mut found = Vec::new();
        for entry in fs::read_dir(folder.unwrap_or_else(|| Path::new(".")))? {
            let entry = entry?;
            if !entry.file_name().to_string_lossy().starts_with(&prefix) {
                continue;
            }
            let path = entry.path();
            let Ok(file) = OpenOptions::new().read(true).append(true).open(&path) else {
                continue;
            };
            if file.try_lock().is_err() {
                continue;
            }
            let mut text = Vec::new();
            (&file)
                .take(limits::ACCOUNTS_FILE_BYTES_MAX)
                .read_to_end(&mut text)?;
            let changed = entry.metadata()?.modified()?;
            let bytes = text.len() as u64;
            let file = Box::new(DiskFile { file, bytes });
            found.push((changed, Self { path, file }, Record::decode_all(&text)));
        }
        found.sort_by(|(left, a, _), (right, b, _)| (left, &a.path).cmp(&(right, &b.path)));
        Ok(found
            .into_iter()
            .map(|(_, segment, records)| (segment, records))
            .collect())
    }
}

impl fmt::Debug for LogSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogSegment")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

struct DiskFile {
    file: File,
    bytes: u64,
}

impl LogFile for DiskFile {
    fn append(&mut self, text: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(text);
        match written {
            Ok(()) => self.bytes += text.len() as u64,
            // What a full disk has cut off must not spoil the next line.
            Err(_) => self.file.set_len(self.bytes)?,
        }
        written
    }
}
