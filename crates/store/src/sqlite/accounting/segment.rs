//! A file of the accounting log. It is locked by its process, so that no other process takes it for one that a
//! killed process has left.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::decoded_log::DecodedLog;
use super::quarantine::quarantine;
use super::record::Record;
use crate::Durability;
use crate::folder::sync_folder_of;

/// Part of the name, after that of the database.
const MARK: &str = "-accounts-";

/// What a segment writes to. Tests replace the file.
pub(super) trait LogFile: Send {
    /// Appends all of the text or none of it.
    fn append(&mut self, text: &[u8]) -> io::Result<()>;

    /// Whether a failed write left the file in a state that nothing may be appended to.
    fn is_damaged(&self) -> bool {
        false
    }
}

pub(super) struct LogSegment {
    path: PathBuf,
    file: Box<dyn LogFile>,
    /// Where the file is moved instead of being removed, because it contains unreadable records.
    quarantine: Option<PathBuf>,
}

impl LogSegment {
    pub(super) fn create(database: &Path, durability: Durability) -> io::Result<Self> {
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
        let is_synced = durability == Durability::Power;
        let prepare = || {
            file.lock()?;
            match is_synced {
                true => sync_folder_of(&path),
                false => Ok(()),
            }
        };
        if let Err(error) = prepare() {
            fs::remove_file(&path).ok();
            return Err(error);
        }
        let file = Box::new(DiskFile::new(file, 0, is_synced));
        Ok(Self {
            path,
            file,
            quarantine: None,
        })
    }

    #[cfg(test)]
    pub(super) fn on(file: Box<dyn LogFile>) -> Self {
        Self {
            path: PathBuf::new(),
            file,
            quarantine: None,
        }
    }

    pub(super) fn append(&mut self, text: &[u8]) -> io::Result<()> {
        self.file.append(text)
    }

    pub(super) fn is_damaged(&self) -> bool {
        self.file.is_damaged()
    }

    /// Removes the file, or moves it to the quarantine. One that stays is applied again, which changes nothing.
    pub(super) fn remove(self) {
        match &self.quarantine {
            None => fs::remove_file(&self.path).ok(),
            Some(quarantine) => fs::rename(&self.path, quarantine).ok(),
        };
    }

    /// The segments that killed processes have left, oldest first, with their records.
    pub(super) fn orphans(database: &Path) -> io::Result<Vec<(Self, Vec<Record>)>> {
        let mut found = Vec::new();
        for path in files_named(database, MARK)? {
            let Ok(file) = OpenOptions::new().read(true).append(true).open(&path) else {
                continue;
            };
            if file.try_lock().is_err() {
                continue;
            }
            let (log, bytes) = DecodedLog::read(&file)?;
            let changed = file.metadata()?.modified()?;
            let quarantine = log.has_unreadable().then(|| quarantine(database, &path, &log));
            let file = Box::new(DiskFile::new(file, bytes, false));
            let segment = Self {
                path,
                file,
                quarantine,
            };
            found.push((changed, segment, log.records));
        }
        found.sort_by(|(left, a, _), (right, b, _)| (left, &a.path).cmp(&(right, &b.path)));
        Ok(found
            .into_iter()
            .map(|(_, segment, records)| (segment, records))
            .collect())
    }
}

/// The files whose names are that of the database and a mark.
pub(super) fn files_named(database: &Path, mark: &str) -> io::Result<Vec<PathBuf>> {
    let Some(name) = database.file_name().and_then(|name| name.to_str()) else {
        return Ok(Vec::new());
    };
    let folder = database.parent().filter(|folder| !folder.as_os_str().is_empty());
    let prefix = format!("{name}{mark}");
    let mut found = Vec::new();
    for entry in fs::read_dir(folder.unwrap_or_else(|| Path::new(".")))? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            found.push(entry.path());
        }
    }
    Ok(found)
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
    /// Every append is synced to disk before it returns.
    is_synced: bool,
    is_damaged: bool,
}

impl DiskFile {
    fn new(file: File, bytes: u64, is_synced: bool) -> Self {
        Self {
            file,
            bytes,
            is_synced,
            is_damaged: false,
        }
    }

    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        self.file.write_all(text)?;
        if !self.is_synced {
            return Ok(());
        }
        let synced = self.file.sync_data();
        // After a failed sync the system may report later ones as successful without having written the data.
        self.is_damaged = synced.is_err();
        synced
    }
}

impl LogFile for DiskFile {
    fn append(&mut self, text: &[u8]) -> io::Result<()> {
        let written = self.write(text);
        match &written {
            Ok(()) => self.bytes += text.len() as u64,
            // What a full disk has cut off must not become part of the next line.
            Err(_) => self.is_damaged |= self.file.set_len(self.bytes).is_err(),
        }
        written
    }

    fn is_damaged(&self) -> bool {
        self.is_damaged
    }
}
