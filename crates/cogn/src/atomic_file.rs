//! Atomic file writes: a temporary file in the same folder is written, synced and renamed. After a crash the
//! path has either the old content or the new.

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
        // Ignored: the file may not exist.
        fs::remove_file(&part).ok();
    }
    done.with_context(|| format!("cannot write {}", path.display()))
}

/// Writes indented JSON with a final newline.
pub(crate) fn write_json(path: &Path, value: &Value) -> Result<()> {
    write(path, format!("{value:#}\n").as_bytes())
}

/// A hidden name in the same folder, so that the rename stays on one file system. It contains the process
/// id, so that two processes that write the same file use different temporary files.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.part", std::process::id()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::write;

    #[test]
    fn replaces_file_and_leaves_no_temporary_file() {
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
