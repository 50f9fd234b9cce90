//! What a migration left behind when it was killed, cleared away: an unfinished new folder is deleted, a
//! finished one that never got its place gets it if the place is empty, and an old one becomes the backup
//! that it was about to become.

use std::fs;
use std::io;
use std::path::Path;

use super::{OLD, PART, READY, free, inode, lock};

/// Clears up after interrupted migrations of `name` in `parent`; says what was done. A migration that is
/// still at work is left alone.
pub(crate) fn recover(parent: &Path, name: &str) -> io::Result<Vec<String>> {
    match lock(parent) {
        Ok(_held) => clear(parent, name),
        Err(_) => Ok(Vec::new()),
    }
}

/// The same for whoever already holds the folder.
pub(super) fn clear(parent: &Path, name: &str) -> io::Result<Vec<String>> {
    let mut done = Vec::new();
    for leftover in leftovers(parent)?
        .into_iter()
        .filter(|leftover| leftover.module == name)
    {
        let path = parent.join(&leftover.file);
        let module = parent.join(name);
        match leftover.kind {
            Kind::Part => fs::remove_dir_all(&path)?,
            Kind::Ready { stamp, inode: own } => {
                if fs::symlink_metadata(&module).is_err() {
                    fs::rename(&path, &module)?;
                    done.push(format!("{name}: finished a migration that was interrupted"));
                } else if inode(&path)? == own {
                    fs::remove_dir_all(&path)?;
                } else {
                    store(parent, name, &path, &stamp, &mut done)?;
                }
            }
            Kind::Old { stamp } => store(parent, name, &path, &stamp, &mut done)?,
        }
    }
    Ok(done)
}

/// The modules of a folder that an interrupted migration has left something beside.
pub(crate) fn interrupted(parent: &Path) -> Vec<String> {
    let mut names: Vec<_> = leftovers(parent)
        .unwrap_or_default()
        .into_iter()
        .map(|leftover| leftover.module)
        .collect();
    names.sort();
    names.dedup();
    names
}

fn store(parent: &Path, name: &str, path: &Path, stamp: &str, done: &mut Vec<String>) -> io::Result<()> {
    let backup = free(parent, &format!("{name}_backup_{stamp}"))?;
    fs::rename(path, &backup)?;
    done.push(format!(
        "{name}: kept what an interrupted migration had replaced as {}",
        backup.display()
    ));
    Ok(())
}

struct Leftover {
    module: String,
    file: String,
    kind: Kind,
}

enum Kind {
    Part,
    Ready { stamp: String, inode: u64 },
    Old { stamp: String },
}

/// In the order in which they must be dealt with: a new folder takes its place before an old one is
/// stored.
fn leftovers(parent: &Path) -> io::Result<Vec<Leftover>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(parent)? {
        let Ok(file) = entry?.file_name().into_string() else {
            continue;
        };
        if let Some((module, kind)) = read(&file) {
            found.push(Leftover { module, file, kind });
        }
    }
    found.sort_by_key(|leftover| match leftover.kind {
        Kind::Part => 0,
        Kind::Ready { .. } => 1,
        Kind::Old { .. } => 2,
    });
    Ok(found)
}

fn read(file: &str) -> Option<(String, Kind)> {
    let hidden = file.strip_prefix('.')?;
    if let Some(module) = hidden.strip_suffix(PART) {
        return Some((String::from(module), Kind::Part));
    }
    if let Some((module, rest)) = hidden.split_once(READY) {
        let (stamp, own) = rest.rsplit_once('.')?;
        let inode = own.parse().ok()?;
        let stamp = String::from(stamp);
        return Some((String::from(module), Kind::Ready { stamp, inode }));
    }
    let (module, stamp) = hidden.split_once(OLD)?;
    let stamp = String::from(stamp);
    Some((String::from(module), Kind::Old { stamp }))
}
