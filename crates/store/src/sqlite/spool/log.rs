//! What was booked and is not in the tables yet, in two files beside the database: one is written while the
//! lines of the other go into the tables. A killed process leaves them behind; the next one picks them up.
//! Both are locked by their owner, so that no other process picks up what is still in use.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::line::Line;
use crate::limits;

/// What the files are called, behind the name of the database.
const MARK: &str = "-calls-";

#[derive(Debug)]
pub(super) struct Log {
    pages: [Page; 2],
    active: usize,
    /// Lines that are not written yet.
    text: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
}

/// A line that could not be written, by its place among those that were added.
pub(super) type Lost = (usize, io::Error);

#[derive(Debug)]
struct Page {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl Log {
    pub(super) fn create(database: &Path) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{count}", std::process::id());
        let page = |letter| Page::create(beside(database, &format!("{MARK}{name}{letter}")));
        Ok(Self {
            pages: [page('a')?, page('b')?],
            active: 0,
            text: Vec::new(),
            ends: Vec::new(),
        })
    }

    /// One whose disk has no room.
    #[cfg(all(test, target_os = "linux"))]
    pub(super) fn without_room() -> io::Result<Self> {
        let page = || {
            let path = PathBuf::from("/dev/full");
            let file = OpenOptions::new().append(true).open(&path)?;
            // Not empty, so that it is not removed.
            Ok::<_, io::Error>(Page { path, file, bytes: 1 })
        };
        Ok(Self {
            pages: [page()?, page()?],
            active: 0,
            text: Vec::new(),
            ends: Vec::new(),
        })
    }

    /// Adds a line to what is written next.
    pub(super) fn add(&mut self, line: &Line) -> io::Result<()> {
        let start = self.text.len();
        if let Err(error) = line.write(&mut self.text) {
            self.text.truncate(start);
            return Err(io::Error::other(error));
        }
        self.ends.push(self.text.len());
        Ok(())
    }

    /// How many lines are not written yet.
    pub(super) fn added(&self) -> usize {
        self.ends.len()
    }

    /// How long they are.
    pub(super) fn added_bytes(&self) -> usize {
        self.text.len()
    }

    /// One write for all of them. If that breaks, each has its own, so that no line fails for another's sake.
    pub(super) fn flush(&mut self) -> Vec<Lost> {
        if self.ends.is_empty() {
            return Vec::new();
        }
        let page = &mut self.pages[self.active];
        let lost = match page.append(&self.text) {
            Ok(()) => Vec::new(),
            Err(error) if self.ends.len() == 1 => vec![(0, error)],
            Err(_) => {
                let starts = std::iter::once(0).chain(self.ends.iter().copied());
                let lines = starts.zip(&self.ends).enumerate();
                lines
                    .filter_map(|(place, (start, end))| {
                        let line = self.text.get(start..*end).unwrap_or_default();
                        page.append(line).err().map(|error| (place, error))
                    })
                    .collect()
            }
        };
        self.ends.clear();
        self.text.clear();
        self.text.shrink_to(limits::CALLS_LINE_BYTES_KEPT);
        lost
    }

    /// What follows goes to the other page. It is empty: its lines are in the tables.
    pub(super) fn turn(&mut self) {
        self.active = 1 - self.active;
    }

    /// The lines of the other page are in the tables.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.pages[1 - self.active].clear()
    }

    /// The lines of the other page are not in the tables: they stay, and more goes behind them.
    pub(super) fn turn_back(&mut self) -> io::Result<()> {
        let (old, new) = (1 - self.active, self.active);
        let mut more = Vec::new();
        File::open(&self.pages[new].path)?.read_to_end(&mut more)?;
        self.pages[old].append(&more)?;
        self.pages[new].clear()?;
        self.active = old;
        Ok(())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        for page in self.pages.iter().filter(|page| page.bytes == 0) {
            // One that stays behind is empty.
            fs::remove_file(&page.path).ok();
        }
    }
}

impl Page {
    fn create(path: PathBuf) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.create_new(true).append(true);
        // What people ask is in it, and what they were answered.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path)?;
        file.lock()?;
        Ok(Self { path, file, bytes: 0 })
    }

    /// All of it or nothing: what a full disk cuts off must not spoil the line behind it.
    fn append(&mut self, text: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(text);
        match written {
            Ok(()) => self.bytes += text.len() as u64,
            Err(_) => self.file.set_len(self.bytes)?,
        }
        written
    }

    fn clear(&mut self) -> io::Result<()> {
        if self.bytes > 0 {
            self.file.set_len(0)?;
            self.bytes = 0;
        }
        Ok(())
    }
}

/// The files of a killed process.
#[derive(Debug)]
pub(super) struct Leftover {
    path: PathBuf,
    /// Locked for as long as it is looked at.
    file: File,
}

impl Leftover {
    /// All that no process has locked, in the order of their names.
    pub(super) fn find(database: &Path) -> io::Result<Vec<Self>> {
        let Some(stem) = database.file_name().and_then(|name| name.to_str()) else {
            return Ok(Vec::new());
        };
        let folder = database.parent().filter(|folder| !folder.as_os_str().is_empty());
        let start = format!("{stem}{MARK}");
        let mut found = Vec::new();
        for entry in fs::read_dir(folder.unwrap_or_else(|| Path::new(".")))? {
            let entry = entry?;
            if !entry
                .file_name()
                .to_str()
                .is_some_and(|name| name.starts_with(&start))
            {
                continue;
            }
            let path = entry.path();
            let Ok(file) = OpenOptions::new().read(true).append(true).open(&path) else {
                continue;
            };
            if file.try_lock().is_ok() {
                found.push(Self { path, file });
            }
        }
        found.sort_by(|left, right| left.path.cmp(&right.path));
        Ok(found)
    }

    /// Its lines; one that was not written to its end never happened.
    pub(super) fn lines(&mut self) -> io::Result<Vec<Line>> {
        let mut text = Vec::new();
        let limit = limits::CALLS_LOG_BYTES_MAX;
        (&self.file).take(limit).read_to_end(&mut text)?;
        // The last line may end within a letter.
        let lines = text.split(|byte| *byte == b'\n');
        let lines = lines.filter_map(|line| std::str::from_utf8(line).ok());
        Ok(lines.filter_map(Line::read).collect())
    }

    pub(super) fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

fn beside(database: &Path, more: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(more);
    PathBuf::from(name)
}
