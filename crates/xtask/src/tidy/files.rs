//! Rules for source files: a header, a maximum length, and a descriptive name.

use crate::git_files;

const LINES_MAX: usize = 500;

/// Files that may be longer, with their maximum. For tables and similar; entries may only shrink.
const LONG: &[(&str, usize)] = &[];

/// File names that are not descriptive.
const NAMELESS: &[&str] = &[
    "utils", "util", "helpers", "helper", "common", "misc", "shared", "manager", "types",
];

const BYTES_MAX: u64 = 200 * 1024;

#[test]
fn source_files_have_a_header() {
    let silent: Vec<_> = git_files::ending(".rs")
        .into_iter()
        .filter(|path| !path.ends_with("/tests.rs") && !path.contains("/tests/it/"))
        .filter(|path| !git_files::read(path).starts_with("//!"))
        .collect();
    assert!(silent.is_empty(), "no `//!` header in {silent:#?}");
}

#[test]
fn source_files_are_short() {
    for path in git_files::ending(".rs") {
        let lines = git_files::read(&path).lines().count();
        let limit = LONG
            .iter()
            .find(|(long, _)| *long == path)
            .map_or(LINES_MAX, |(_, limit)| *limit);
        assert!(
            lines <= limit,
            "{path} has {lines} lines, more than {limit}: split it"
        );
    }
    for (path, limit) in LONG {
        let lines = git_files::read(path).lines().count();
        assert!(
            lines > LINES_MAX,
            "{path} is within the general limit: remove it from the list ({limit})"
        );
    }
}

#[test]
fn file_names_are_descriptive() {
    for path in git_files::files() {
        let stem = path
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .split('.')
            .next()
            .unwrap_or_default();
        assert!(!NAMELESS.contains(&stem), "{path}: the name is not descriptive");
    }
}

#[test]
fn no_large_file_is_committed() {
    for path in git_files::files() {
        let bytes = git_files::size(&path);
        assert!(
            bytes <= BYTES_MAX || path == "Cargo.lock",
            "{path} has {bytes} bytes"
        );
    }
}

/// Paths of a build machine and addresses of package registries must not be committed.
#[test]
fn tree_contains_no_machine_specific_paths() {
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
