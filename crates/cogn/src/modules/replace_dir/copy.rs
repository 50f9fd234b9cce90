//! Builds the new folder: files changed by the plan are written, all others are copied unchanged (assets,
//! hidden files, links as links, modes, times). Files are not hard-linked, because an editor that writes in
//! place would change the backup too.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use module::file_map::Entry;

use super::{ReplaceStep, Replacement, StepHook};

pub(super) fn build(work: &Replacement<'_>, target: &Path, watch: StepHook<'_>) -> io::Result<()> {
    let mut copy = Copy { work, watch };
    copy.folder(work.path, target, "")?;
    copy.additions(target)?;
    fs::set_permissions(target, fs::metadata(work.path)?.permissions())?;
    sync_folder(target)
}

struct Copy<'a, 'w> {
    work: &'a Replacement<'a>,
    watch: StepHook<'w>,
}

impl Copy<'_, '_> {
    /// Copies a folder; returns 0 if it was removed because all its files were, otherwise 1.
    fn folder(&mut self, source: &Path, target: &Path, prefix: &str) -> io::Result<usize> {
        (self.watch)(ReplaceStep::Write)?;
        fs::create_dir(target)?;
        let mut entries: Vec<_> = fs::read_dir(source)?.collect::<io::Result<_>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        let found = entries.len();
        let mut kept = 0;
        for entry in entries {
            let name = entry.file_name();
            let path = match name.to_str() {
                Some(name) if prefix.is_empty() => String::from(name),
                Some(name) => format!("{prefix}/{name}"),
                // The plan contains only UTF-8 names, so the file is copied unchanged.
                None => format!("{prefix}/\0"),
            };
            kept += self.entry(&entry, &target.join(&name), &path)?;
        }
        if prefix.is_empty() {
            return Ok(1);
        }
        if found > 0 && kept == 0 {
            fs::remove_dir(target)?;
            return Ok(0);
        }
        fs::set_permissions(target, fs::metadata(source)?.permissions())?;
        sync_folder(target)?;
        Ok(1)
    }

    /// Copies one entry; returns the number of entries created.
    fn entry(&mut self, entry: &fs::DirEntry, target: &Path, path: &str) -> io::Result<usize> {
        let kind = entry.file_type()?;
        if kind.is_dir() {
            return self.folder(&entry.path(), target, path);
        }
        if !kind.is_file() && !kind.is_symlink() {
            let message = format!("{} is neither file, folder nor link", entry.path().display());
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        (self.watch)(ReplaceStep::Write)?;
        let (before, after) = (self.work.before.get(path), self.work.after.get(path));
        match after {
            None if before.is_some() => return Ok(0),
            Some(Entry::Read(bytes)) if before != after => {
                write(target, bytes)?;
                let permissions = fs::metadata(entry.path())?.permissions();
                fs::set_permissions(target, permissions)?;
            }
            _ if kind.is_symlink() => link(&fs::read_link(entry.path())?, target)?,
            _ => {
                fs::copy(entry.path(), target)?;
                let modified = entry.metadata()?.modified();
                // Times are best effort: a file that cannot be opened for writing is already complete.
                if let (Ok(file), Ok(modified)) = (OpenOptions::new().write(true).open(target), modified) {
                    file.set_modified(modified).ok();
                    file.sync_all()?;
                }
            }
        }
        Ok(1)
    }

    /// Files that the plan adds.
    fn additions(&mut self, root: &Path) -> io::Result<()> {
        for (path, entry) in self.work.after.iter() {
            let Entry::Read(bytes) = entry else { continue };
            if self.work.before.contains(path) {
                continue;
            }
            (self.watch)(ReplaceStep::Write)?;
            let target = root.join(path);
            let folder = target.parent().unwrap_or(root);
            fs::create_dir_all(folder)?;
            write(&target, bytes)?;
            sync_folder(folder)?;
        }
        Ok(())
    }
}

/// Creates a new file and syncs it to disk.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(unix)]
fn link(target: &Path, path: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, path)
}

#[cfg(windows)]
fn link(target: &Path, path: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_file(target, path)
}

/// Syncs the entries of a folder to disk, if the system supports it.
#[cfg(unix)]
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(not(unix))]
pub(super) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
