//! A module's folder exchanged for a new one, whole or not at all. The new folder is built beside the old
//! one and made durable first; then the two trade places in one step. Whatever moment a crash picks, the
//! module's path holds either the old folder or the new one, never a mixture, and the next migration
//! clears away what was left. On file systems that cannot exchange two names there is a moment in which
//! the path holds nothing; the next migration then puts the new folder there.

mod copy;
mod recover;

#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use module::FileMap;

pub(crate) use recover::{recover, interrupted};

use super::read_folder;
use copy::{build, sync_folder};

/// What becomes of the old folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backup {
    Keep,
    Discard,
}

/// A folder to be replaced. `path` is real: no link, no `..`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replacement<'a> {
    pub(crate) path: &'a Path,
    pub(crate) before: &'a FileMap,
    pub(crate) after: &'a FileMap,
    pub(crate) backup: Backup,
    /// When, for the name of the backup.
    pub(crate) stamp: &'a str,
}

/// The moments at which a crash could fall; tests let it fall there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplaceStep {
    /// One more file or folder is about to be written beside the module.
    Write,
    /// The new folder is about to be declared complete.
    Ready,
    /// Old and new are about to trade places.
    Exchange,
    /// Where they cannot: the old one is about to leave.
    MoveOldAway,
    /// And the new one is about to take its place.
    MoveNewIn,
    /// The old one is about to become the backup.
    KeepBackup,
    /// The old one is about to be deleted.
    Delete,
}

/// Told of every step before it is taken; an error stops the work there and then.
pub(crate) type StepHook<'a> = &'a mut dyn FnMut(ReplaceStep) -> io::Result<()>;

/// How two names trade places.
type SwapFn = fn(&Path, &Path) -> io::Result<()>;

/// Replaces the folder; returns where the old one is kept. After a failure everything is as before.
pub(crate) fn replace(work: &Replacement<'_>) -> Result<Option<PathBuf>> {
    let places = ReplacePaths::of(work)?;
    let _lock = lock(&places.parent)?;
    let done = carry_out(work, &places, exchange, &mut |_| Ok(()));
    if done.is_err() {
        // What cannot be cleared away now, the next migration clears away.
        recover::clear(&places.parent, &places.name).ok();
    }
    done
}

/// The names that a replacement uses. Hidden ones are not seen as modules.
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

    /// The complete new folder. Its name carries its own inode, so that after a crash one can tell
    /// whether it still is the new folder or, having traded places, the old one.
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

/// The steps themselves. Nothing is cleaned up here: an error leaves what a crash would leave.
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

/// Two renames where one exchange is not to be had. Returns where the old folder went.
fn step_aside(work: &Replacement<'_>, places: &ReplacePaths, ready: &Path, watch: StepHook<'_>) -> Result<PathBuf> {
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

/// The kernel or the file system does not know how (`EINVAL` is what old file systems say).
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

/// Where there are no inodes there is no exchange either, and a complete new folder is always new.
#[cfg(not(unix))]
fn inode(_: &Path) -> io::Result<u64> {
    Ok(0)
}

/// A name that is not taken: two migrations within a second get two backups.
fn free(parent: &Path, name: &str) -> io::Result<PathBuf> {
    let mut path = parent.join(name);
    let mut number = 2;
    while fs::symlink_metadata(&path).is_ok() {
        path = parent.join(format!("{name}-{number}"));
        number += 1;
    }
    Ok(path)
}

/// Keeps two migrations out of each other's way. A file system without locks is taken as it is.
fn lock(parent: &Path) -> Result<Option<File>> {
    let Ok(folder) = File::open(parent) else {
        return Ok(None);
    };
    match folder.try_lock() {
        Ok(()) => Ok(Some(folder)),
        Err(fs::TryLockError::WouldBlock) => {
            bail!("another migration is at work in {}", parent.display())
        }
        Err(fs::TryLockError::Error(_)) => Ok(None),
    }
}
