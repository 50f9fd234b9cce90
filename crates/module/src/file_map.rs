//! A module folder as data: relative path with `/` to entry. It is the loader's only input, so that a folder
//! on disk, an archive and a test literal are treated alike. The caller does the IO and adds unusual files
//! (too large, a link that points outside the folder) as entries, not as errors, so that they become
//! diagnostics.

use std::collections::BTreeMap;

/// The entry at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A file whose contents are part of the module.
    Read(Vec<u8>),
    /// A file that is only listed (an asset): its size and its first [`crate::limits::HEAD_BYTES`] bytes are
    /// stored.
    Listed { size_bytes: u64, head: Vec<u8> },
    /// An entry that could not be read, with the reason for the diagnostic.
    Refused(Refusal),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    TooLarge {
        size_bytes: u64,
        limit_bytes: u64,
    },
    /// A link whose target is outside the module folder.
    Escapes,
    /// A link that resolves to itself.
    LinkLoop,
    /// A socket, a device, a pipe.
    NotAFile,
    Unreadable(String),
    /// The folder exceeds the limit of files or depth.
    TooMany,
}

/// A module's files by relative path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileMap {
    entries: BTreeMap<String, Entry>,
}

impl FileMap {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn insert(&mut self, path: impl Into<String>, entry: Entry) {
        self.entries.insert(path.into(), entry);
    }

    pub fn remove(&mut self, path: &str) -> Option<Entry> {
        self.entries.remove(path)
    }

    pub fn contains(&self, path: &str) -> bool {
        self.entries.contains_key(path)
    }

    pub fn get(&self, path: &str) -> Option<&Entry> {
        self.entries.get(path)
    }

    /// The bytes of a file that was read.
    pub fn bytes(&self, path: &str) -> Option<&[u8]> {
        match self.entries.get(path) {
            Some(Entry::Read(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// The text of a file that was read, if it is UTF-8.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.bytes(path).and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(path, entry)| (path.as_str(), entry))
    }

    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }
}

impl<P: Into<String>, B: Into<Vec<u8>>> FromIterator<(P, B)> for FileMap {
    fn from_iter<I: IntoIterator<Item = (P, B)>>(files: I) -> Self {
        let entries = files
            .into_iter()
            .map(|(path, bytes)| (path.into(), Entry::Read(bytes.into())))
            .collect();
        Self { entries }
    }
}

/// Normalises a path from a manifest to a path relative to the module's root. `None` if it is absolute, names
/// a drive, or points outside the folder.
pub fn normalise(path: &str) -> Option<String> {
    if path.starts_with('/') || path.contains('\\') || path.contains('\0') || path.contains(':') {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}
