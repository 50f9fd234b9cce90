//! Reads a module folder into a [`FileMap`]. Number, size and depth are limited; links are followed only
//! inside the folder; refused files become entries with a reason. Of assets only size and first bytes are
//! read.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result};
use module::FileMap;
use module::file_map::{Entry, Refusal};
use module::limits;

pub(crate) fn read_folder(root: &Path) -> Result<FileMap> {
    let real =
        fs::canonicalize(root).with_context(|| format!("cannot open module folder {}", root.display()))?;
    let mut files = FileMap::new();
    walk(&real, &real, "", 0, &mut files)?;
    Ok(files)
}

/// Reads only the manifest and the prompt, which identify a module and its dependencies.
pub(crate) fn read_essentials(root: &Path) -> Result<FileMap> {
    let real =
        fs::canonicalize(root).with_context(|| format!("cannot open module folder {}", root.display()))?;
    let mut files = FileMap::new();
    for name in [
        "module.yaml",
        "module.yml",
        "MODULE.md",
        "module.md",
        "prompt.md",
        "prompt.txt",
    ] {
        let path = real.join(name);
        if let Ok(Kind::File { size_bytes }) = inspect(&real, &path) {
            files.insert(name, take(&path, name, size_bytes));
        }
    }
    Ok(files)
}

fn walk(root: &Path, folder: &Path, prefix: &str, depth: usize, files: &mut FileMap) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut entries: Vec<_> = entries.collect::<io::Result<_>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        if name.starts_with('.') {
            continue;
        }
        let path = if prefix.is_empty() {
            name
        } else {
            format!("{prefix}/{name}")
        };
        if files.len() >= limits::FILES_MAX {
            files.insert(path, Entry::Refused(Refusal::TooMany));
            return Ok(());
        }
        match inspect(root, &entry.path()) {
            Ok(Kind::Folder) if depth + 1 >= limits::FOLDER_DEPTH_MAX => {
                files.insert(path, Entry::Refused(Refusal::TooMany));
            }
            // A folder with the name of a text file is an error, even if it is empty.
            Ok(Kind::Folder) if is_text(&path) => {
                files.insert(path, Entry::Refused(Refusal::NotAFile));
            }
            Ok(Kind::Folder) => walk(root, &entry.path(), &path, depth + 1, files)?,
            Ok(Kind::File { size_bytes }) => {
                let taken = take(&entry.path(), &path, size_bytes);
                files.insert(path, taken);
            }
            Err(refusal) => files.insert(path, Entry::Refused(refusal)),
        }
    }
    Ok(())
}

enum Kind {
    File { size_bytes: u64 },
    Folder,
}

/// The kind of a path. A linked folder is refused even inside the root, because links could form a loop.
fn inspect(root: &Path, path: &Path) -> Result<Kind, Refusal> {
    let unreadable = |error: io::Error| Refusal::Unreadable(error.to_string());
    let own = fs::symlink_metadata(path).map_err(unreadable)?;
    let metadata = if own.is_symlink() {
        let real = fs::canonicalize(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Refusal::Unreadable(String::from("broken link")),
            _ if error.raw_os_error() == Some(40) => Refusal::LinkLoop,
            _ => Refusal::Unreadable(error.to_string()),
        })?;
        if !real.starts_with(root) {
            return Err(Refusal::Escapes);
        }
        let target = fs::metadata(&real).map_err(unreadable)?;
        if target.is_dir() {
            return Err(Refusal::LinkLoop);
        }
        target
    } else {
        own
    };
    if metadata.is_dir() {
        Ok(Kind::Folder)
    } else if metadata.is_file() {
        Ok(Kind::File {
            size_bytes: metadata.len(),
        })
    } else {
        Err(Refusal::NotAFile)
    }
}

/// Reads text files and lists all others. The size is checked again while reading, because the file may have
/// grown.
fn take(disk: &Path, path: &str, size_bytes: u64) -> Entry {
    if !is_text(path) {
        return list(disk, size_bytes);
    }
    let limit_bytes = limits::FILE_BYTES_MAX;
    if size_bytes > limit_bytes {
        return Entry::Refused(Refusal::TooLarge {
            size_bytes,
            limit_bytes,
        });
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size_bytes).unwrap_or_default());
    match fs::File::open(disk).and_then(|file| file.take(limit_bytes + 1).read_to_end(&mut bytes)) {
        Ok(read) if read as u64 > limit_bytes => Entry::Refused(Refusal::TooLarge {
            size_bytes: read as u64,
            limit_bytes,
        }),
        Ok(_) => Entry::Read(bytes),
        Err(error) => Entry::Refused(Refusal::Unreadable(error.to_string())),
    }
}

/// An asset with its size and its first bytes, which identify its type.
fn list(disk: &Path, size_bytes: u64) -> Entry {
    let mut head = Vec::with_capacity(limits::HEAD_BYTES);
    match fs::File::open(disk).and_then(|file| file.take(limits::HEAD_BYTES as u64).read_to_end(&mut head)) {
        Ok(_) => Entry::Listed { size_bytes, head },
        Err(error) => Entry::Refused(Refusal::Unreadable(error.to_string())),
    }
}

/// Files whose contents are parsed: text files outside `assets/`.
fn is_text(path: &str) -> bool {
    let written = [".yaml", ".yml", ".json", ".md", ".txt"];
    !path.starts_with("assets/") && written.iter().any(|ending| path.ends_with(ending))
}
