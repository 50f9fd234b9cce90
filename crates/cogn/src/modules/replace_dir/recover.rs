//! Recovery after a killed migration: an incomplete new folder is deleted; a complete one is moved to the
//! path of the module if that is empty; an old one becomes the backup.

use std::fs;
use std::io;
use std::path::Path;

use super::{OLD, PART, READY, free, inode, lock};

/// Recovers interrupted migrations of `name` in `parent`; returns messages about the actions. Does nothing
/// while another migration is running.
pub(crate) fn recover(parent: &Path, name: &str) -> io::Result<Vec<String>> {
    match lock(parent) {
        Ok(_held) => clear(parent, name),
        Err(_) => Ok(Vec::new()),
    }
}

/// The same for a caller that has locked the folder.
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
                    done.push(format!("{name}: completed an interrupted migration"));
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

/// The names of modules in a folder with leftovers of an interrupted migration.
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
        "{name}: backup of an interrupted migration: {}",
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

/// Leftovers in the order of processing: a new folder is moved to its path before an old one becomes the
/// backup.
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
