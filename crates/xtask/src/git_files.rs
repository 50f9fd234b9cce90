//! The files of the repository according to git: tracked, or new and not ignored.

use std::fs;
#[cfg(test)]
use std::path::Path;
use std::process::Command;

use crate::shell::{capture, root};

/// Paths relative to the root, with `/`. Outside a git checkout (in a source archive) this panics instead of
/// passing on an empty list.
pub(crate) fn files() -> Vec<String> {
    let mut git = Command::new("git");
    git.current_dir(root())
        .args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let list = capture(&mut git).expect("this is a git checkout");
    let files: Vec<String> = list
        .lines()
        .filter(|path| root().join(path).is_file())
        .map(String::from)
        .collect();
    assert!(files.len() > 20, "git lists implausibly few files");
    files
}

pub(crate) fn ending(suffix: &str) -> Vec<String> {
    files()
        .into_iter()
        .filter(|path| path.ends_with(suffix))
        .collect()
}

/// Rust sources of the crates, in the order of their paths, without tests and repository rules.
pub(crate) fn sources() -> Vec<String> {
    let mut sources = ending(".rs");
    sources.retain(|path| {
        path.starts_with("crates/")
            && path.contains("/src/")
            && !path.ends_with("/tests.rs")
            && !path.contains("/tests/")
            && !path.starts_with("crates/xtask/src/tidy/")
    });
    sources.sort();
    sources
}

pub(crate) fn read(path: &str) -> String {
    String::from_utf8_lossy(&fs::read(root().join(path)).expect("a listed file can be read")).into_owned()
}

#[cfg(test)]
pub(crate) fn size(path: impl AsRef<Path>) -> u64 {
    fs::metadata(root().join(path))
        .expect("a listed file has a size")
        .len()
}
