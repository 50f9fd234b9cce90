//! The files under `assets/`.

use crate::file_map::{Entry, FileMap};
use crate::module::Asset;

pub(super) fn list(files: &FileMap) -> Vec<Asset> {
    files
        .iter()
        .filter(|(path, _)| path.starts_with("assets/"))
        .filter_map(|(path, entry)| {
            let size_bytes = match entry {
                Entry::Listed { size_bytes, .. } => *size_bytes,
                Entry::Read(bytes) => bytes.len() as u64,
                Entry::Refused(_) => return None,
            };
            Some(Asset {
                path: String::from(path),
                size_bytes,
            })
        })
        .collect()
}
