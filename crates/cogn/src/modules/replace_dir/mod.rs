//! Replaces the folder of a module atomically. The new folder is built in the same parent and synced to disk;
//! then the two names are exchanged in one step. After a crash the path of the module contains either the old
//! folder or the new one, never a mixture, and the next migration removes the leftovers. On file systems
//! without an exchange operation the path can be missing after a crash; the next migration then moves the new
//! folder there.

mod copy;
mod recover;

#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use module::FileMap;

pub(crate) use recover::{interrupted, recover};

use super::read_folder;
use copy::{build, sync_folder};

/// Whether the old folder is kept as a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backup {
    Keep,
    Discard,
}

/// A folder to be replaced. `path` is canonical.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replacement<'a> {
    pub(crate) path: &'a Path,
    pub(crate) before: &'a FileMap,
    pub(crate) after: &'a FileMap,
    pub(crate) backup: Backup,
    /// Timestamp for the name of the backup.
    pub(crate) stamp: &'a str,
}

/// The steps of a replacement; tests inject crashes before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplaceStep {
    /// Write a file or folder of the new folder.
    Write,
    /// Mark the new folder as complete.
    Ready,
    /// Exchange the old and the new folder.
    Exchange,
    /// Without an exchange operation: move the old folder away.
    MoveOldAway,
    /// Without an exchange operation: move the new folder to the path of the module.
    MoveNewIn,
    /// Rename the old folder to the backup.
    KeepBackup,
    /// Delete the old folder.
    Delete,
}

/// Called before every step; an error aborts the replacement.
pub(crate) type StepHook<'a> = &'a mut dyn FnMut(ReplaceStep) -> io::Result<()>;

/// Exchanges two paths atomically.
type SwapFn = fn(&Path, &Path) -> io::Result<()>;

/// Replaces the folder and returns the path of the backup. On failure the old folder is unchanged.
pub(crate) fn replace(work: &Replacement<'_>) -> Result<Option<PathBuf>> {
    let places = ReplacePaths::of(work)?;
    let _lock = lock(&places.parent)?;
    let done = carry_out(work, &places, exchange, &mut |_| Ok(()));
    if done.is_err() {
        // Leftovers that cannot be removed now are removed by the next migration.
        recover::clear(&places.parent, &places.name).ok();
    }
    done
}

/// The paths of a replacement. Hidden names are not found as modules.
#[derive(Debug)]
struct ReplacePaths {
    parent: PathBuf,
    name: String,
    part: PathBuf,
    backup: PathBuf,
}

impl ReplacePaths {
    fn of(work: &Replacement<'_>) -> Result<Self> {
        let name = work.path.file_name().and_then(|name| name.to_str());
        let (Some(parent), Some(name)) = (work.path.parent(), name) else {
            bail!("{} is not a folder that can be replaced", work.path.display());
        };
        Ok(Self {
            parent: parent.to_path_buf(),
            name: String::from(name),
            part: parent.join(part_name(name)),
            backup: free(parent, &format!("{name}_backup_{}", work.stamp))?,
        })
    }

    /// The path of the complete new folder. Its name contains its inode, so that recovery can distinguish the
    /// new folder from the old one after the exchange.
    fn ready(&self, stamp: &str) -> io::Result<PathBuf> {
        let inode = inode(&self.part)?;
        Ok(self.parent.join(format!(".{}{READY}{stamp}.{inode}", self.name)))
    }

    fn old(&self, stamp: &str) -> PathBuf {
        self.parent.join(format!(".{}{OLD}{stamp}", self.name))
    }
}

const PART: &str = ".cogn-part";
const READY: &str = ".cogn-ready.";
const OLD: &str = ".cogn-old.";

fn part_name(name: &str) -> String {
    format!(".{name}{PART}")
}

/// Executes the steps. An error leaves the same state as a crash; the caller cleans up.
fn carry_out(
    work: &Replacement<'_>,
    places: &ReplacePaths,
    exchange: SwapFn,
    watch: StepHook<'_>,
) -> Result<Option<PathBuf>> {
    build(work, &places.part, watch)
        .with_context(|| format!("cannot write the new folder beside {}", work.path.display()))?;
    let written = read_folder(&places.part)?;
    if written != *work.after {
        bail!(
            "{} changed while it was being copied; try again",
            work.path.display()
        );
    }
    let ready = places.ready(work.stamp)?;
    watch(ReplaceStep::Ready)?;
    fs::rename(&places.part, &ready)?;
    sync_folder(&places.parent)?;

    watch(ReplaceStep::Exchange)?;
    let old = match exchange(&ready, work.path) {
        Ok(()) => ready,
        Err(error) if cannot_exchange(&error) => step_aside(work, places, &ready, watch)?,
        Err(error) => return Err(anyhow!(error).context(format!("cannot replace {}", work.path.display()))),
    };
    sync_folder(&places.parent)?;
    match work.backup {
        Backup::Keep if old == places.backup => Ok(Some(old)),
        Backup::Keep => {
            watch(ReplaceStep::KeepBackup)?;
            fs::rename(&old, &places.backup)?;
            sync_folder(&places.parent)?;
            Ok(Some(places.backup.clone()))
        }
        Backup::Discard => {
            watch(ReplaceStep::Delete)?;
            fs::remove_dir_all(&old)?;
            Ok(None)
        }
    }
}

/// Replaces the exchange by two renames. Returns the new path of the old folder.
fn step_aside(
    work: &Replacement<'_>,
    places: &ReplacePaths,
    ready: &Path,
    watch: StepHook<'_>,
) -> Result<PathBuf> {
    let old = match work.backup {
        Backup::Keep => places.backup.clone(),
        Backup::Discard => places.old(work.stamp),
    };
    watch(ReplaceStep::MoveOldAway)?;
    fs::rename(work.path, &old).with_context(|| format!("cannot move {} away", work.path.display()))?;
    watch(ReplaceStep::MoveNewIn)?;
    fs::rename(ready, work.path).with_context(|| format!("cannot put {} in place", work.path.display()))?;
    Ok(old)
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).map_err(io::Error::from)
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether the kernel or the file system does not support the exchange (`EINVAL` on old file systems).
fn cannot_exchange(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput
    )
}

#[cfg(unix)]
fn inode(path: &Path) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    Ok(fs::symlink_metadata(path)?.ino())
}

/// Systems without inodes have no exchange operation, so a complete new folder is always the new one.
#[cfg(not(unix))]
fn inode(_: &Path) -> io::Result<u64> {
    Ok(0)
}

/// An unused path: two migrations within a second get two backups.
fn free(parent: &Path, name: &str) -> io::Result<PathBuf> {
    let mut path = parent.join(name);
    let mut number = 2;
    while fs::symlink_metadata(&path).is_ok() {
        path = parent.join(format!("{name}-{number}"));
        number += 1;
    }
    Ok(path)
}

/// Locks the parent folder against concurrent migrations. File systems without locks are not protected.
fn lock(parent: &Path) -> Result<Option<File>> {
    let Ok(folder) = File::open(parent) else {
        return Ok(None);
    };
    match folder.try_lock() {
        Ok(()) => Ok(Some(folder)),
        Err(fs::TryLockError::WouldBlock) => {
            bail!("another migration is running in {}", parent.display())
        }
        Err(fs::TryLockError::Error(_)) => Ok(None),
    }
}
