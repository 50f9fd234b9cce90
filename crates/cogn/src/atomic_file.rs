//! Files that are there whole or not at all: written beside their place, made durable, then moved.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let part = beside(path);
    let done = File::create(&part)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&part, path));
    if done.is_err() {
        // It may never have come into being.
        fs::remove_file(&part).ok();
    }
    done.with_context(|| format!("cannot write {}", path.display()))
}

/// Indented, with a line end behind it.
pub(crate) fn write_json(path: &Path, value: &Value) -> Result<()> {
    write(path, format!("{value:#}\n").as_bytes())
}

/// A hidden name in the same folder, so that the move crosses no file system; of this process alone, so
/// that two that write the same file do not write into each other.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.part", std::process::id()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::write;

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);

        let blocked = folder.path().join("folder");
        fs::create_dir(&blocked).unwrap();
        assert!(write(&blocked, b"three").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
