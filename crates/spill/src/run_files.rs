//! Inputs of unfinished runs in files: a server that starts after a crash reads them to rerun the runs. Each
//! run has a folder, which is removed when the run has ended.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ir::RunId;

#[derive(Clone, Debug)]
pub struct RunFiles {
    folder: PathBuf,
    bytes_max: u64,
    used: Arc<AtomicU64>,
}

impl RunFiles {
    /// Files in `folder`, up to `bytes_max` in total. The folder is created with the first file.
    pub fn new(folder: PathBuf, bytes_max: u64) -> Self {
        Self {
            folder,
            bytes_max,
            used: Arc::default(),
        }
    }

    /// Only the owner may read the file.
    pub fn write(&self, run: RunId, index: usize, text: &str) -> io::Result<()> {
        let bytes = text.len() as u64;
        let more = |used: u64| used.checked_add(bytes).filter(|all| *all <= self.bytes_max);
        let reserved = self.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        reserved.map_err(|_| io::Error::from(io::ErrorKind::StorageFull))?;
        let written = self.create(run, index, text);
        if written.is_err() {
            self.used.fetch_sub(bytes, Ordering::SeqCst);
            fs::remove_file(self.path(run, index)).ok();
        }
        written
    }

    fn create(&self, run: RunId, index: usize, text: &str) -> io::Result<()> {
        let (mut folders, mut options) = (DirBuilder::new(), OpenOptions::new());
        folders.recursive(true);
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        folders.create(self.run_folder(run))?;
        options.open(self.path(run, index))?.write_all(text.as_bytes())
    }

    pub fn read(&self, run: RunId, index: usize) -> io::Result<String> {
        fs::read_to_string(self.path(run, index))
    }

    /// Removes the files of a run.
    pub fn remove(&self, run: RunId) -> io::Result<()> {
        let folder = self.run_folder(run);
        let bytes = size_of(&folder)?;
        fs::remove_dir_all(&folder)?;
        self.used.fetch_sub(bytes, Ordering::SeqCst);
        Ok(())
    }

    /// Removes the files of all other runs: to be called once, before the first run.
    pub fn retain(&self, unfinished: &HashSet<RunId>) -> io::Result<()> {
        let folders = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            folders => folders?,
        };
        for folder in folders {
            let folder = folder?;
            let run = folder
                .file_name()
                .to_str()
                .and_then(|name| name.parse::<RunId>().ok());
            match run.is_some_and(|run| unfinished.contains(&run)) {
                true => {
                    self.used.fetch_add(size_of(&folder.path())?, Ordering::SeqCst);
                }
                false => fs::remove_dir_all(folder.path())?,
            }
        }
        Ok(())
    }

    fn run_folder(&self, run: RunId) -> PathBuf {
        self.folder.join(run.to_string())
    }

    fn path(&self, run: RunId, index: usize) -> PathBuf {
        self.run_folder(run).join(index.to_string())
    }
}

fn size_of(folder: &std::path::Path) -> io::Result<u64> {
    fs::read_dir(folder)?
        .map(|file| Ok(file?.metadata()?.len()))
        .sum()
}
