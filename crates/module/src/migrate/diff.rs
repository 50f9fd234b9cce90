//! The changes of a migration as a unified diff in the format of `patch`.

use similar::TextDiff;

use crate::file_map::{Entry, FileMap};

/// The difference of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    pub file: String,
    pub text: String,
}

/// The files that differ, in order of their paths.
pub fn diff(before: &FileMap, after: &FileMap) -> Vec<FileDiff> {
    let mut paths: Vec<&str> = before.paths().chain(after.paths()).collect();
    paths.sort_unstable();
    paths.dedup();
    let changed = paths
        .into_iter()
        .filter(|path| before.get(path) != after.get(path));
    changed
        .map(|path| FileDiff {
            file: String::from(path),
            text: file_diff(path, before.get(path), after.get(path)),
        })
        .collect()
}

fn file_diff(path: &str, before: Option<&Entry>, after: Option<&Entry>) -> String {
    let text = |entry: Option<&Entry>| match entry {
        Some(Entry::Read(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        Some(Entry::Listed { .. } | Entry::Refused(_)) | None => String::new(),
    };
    let name = |entry: Option<&Entry>, side: &str| match entry {
        Some(_) => format!("{side}/{path}"),
        None => String::from("/dev/null"),
    };
    let (old, new) = (text(before), text(after));
    let difference = TextDiff::from_lines(old.as_str(), new.as_str());
    let mut unified = difference.unified_diff();
    unified.header(&name(before, "a"), &name(after, "b"));
    unified.to_string()
}
