//! What every source file must be: headed by what it is, short enough to hold one concept, and named
//! after it.

use super::git_files;

const LINES_MAX: usize = 500;

/// Files that are longer, with the length they may not exceed. Tables and their like; shrink only.
const LONG: &[(&str, usize)] = &[];

/// Names that say nothing about what is inside.
const NAMELESS: &[&str] = &[
    "utils", "util", "helpers", "helper", "common", "misc", "shared", "manager", "types",
];

const BYTES_MAX: u64 = 200 * 1024;

#[test]
fn every_source_file_says_what_it_is() {
    let silent: Vec<_> = git_files::ending(".rs")
        .into_iter()
        .filter(|path| !path.ends_with("/tests.rs") && !path.contains("/tests/it/"))
        .filter(|path| !git_files::read(path).starts_with("//!"))
        .collect();
    assert!(silent.is_empty(), "no `//!` header in {silent:#?}");
}

#[test]
fn files_hold_one_concept() {
    for path in git_files::ending(".rs") {
        let lines = git_files::read(&path).lines().count();
        let limit = LONG
            .iter()
            .find(|(long, _)| *long == path)
            .map_or(LINES_MAX, |(_, limit)| *limit);
        assert!(
            lines <= limit,
            "{path} has {lines} lines, more than {limit}: is it still one concept?"
        );
    }
    for (path, limit) in LONG {
        let lines = git_files::read(path).lines().count();
        assert!(
            lines > LINES_MAX,
            "{path} has become short enough: strike it from the list ({limit})"
        );
    }
}

#[test]
fn files_are_named_after_what_they_hold() {
    for path in git_files::files() {
        let stem = path
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .split('.')
            .next()
            .unwrap_or_default();
        assert!(!NAMELESS.contains(&stem), "{path}: the name says nothing");
    }
}

#[test]
fn nothing_large_is_checked_in() {
    for path in git_files::files() {
        let bytes = git_files::size(&path);
        assert!(
            bytes <= BYTES_MAX || path == "Cargo.lock",
            "{path} has {bytes} bytes"
        );
    }
}

/// Paths of a builder's machine and addresses of package registries have no place in the tree.
#[test]
fn the_tree_knows_no_machine() {
    let words = [
        ["/root", "/"].concat(),
        ["/home", "/"].concat(),
        ["index.crates", ".io"].concat(),
        ["pypi", ".org"].concat(),
        ["registry.npmjs", ".org"].concat(),
        ["deb.debian", ".org"].concat(),
        ["/work", "/"].concat(),
    ];
    for path in git_files::files().iter().filter(|path| *path != "Cargo.lock") {
        let text = git_files::read(path);
        for word in &words {
            assert!(!text.contains(word.as_str()), "{path} contains `{word}`");
        }
    }
}
