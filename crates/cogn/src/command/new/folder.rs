//! Writes the folder of a new module, with a recording of its golden test: the example as the answer, so that
//! `cogn test` passes before a back-end is configured.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context, Result};
use module::FileMap;
use module::file_map::Entry;

use crate::command::test::record_example;
use crate::output::hinted;

/// Writes a temporary folder in the same parent and renames it, so that no incomplete module is visible.
pub(super) fn create(path: &Path, files: &FileMap, records: bool) -> Result<()> {
    if fs::symlink_metadata(path).is_ok() {
        return Err(hinted(
            format!("{} already exists", path.display()),
            "choose another name, or --dir DIR",
        ));
    }
    let parent = path.parent().unwrap_or_else(|| Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    let part = parent.join(format!(".{name}.cogn-new"));
    // Left over from an earlier process that was killed.
    fs::remove_dir_all(&part).ok();
    let filled = fill(&part, files).map_err(anyhow::Error::new);
    let recorded = filled.and_then(|()| match records {
        true => record_example(&part),
        false => Ok(()),
    });
    let made = recorded.and_then(|()| fs::rename(&part, path).map_err(anyhow::Error::new));
    if made.is_err() {
        fs::remove_dir_all(&part).ok();
    }
    made.with_context(|| format!("cannot write {}", path.display()))
}

fn fill(folder: &Path, files: &FileMap) -> io::Result<()> {
    fs::create_dir(folder)?;
    for (path, entry) in files.iter() {
        let Entry::Read(bytes) = entry else { continue };
        let target = folder.join(path);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(target, bytes)?;
    }
    Ok(())
}
