//! Snapshots without a test give false confidence. Insta names the file after the test's module and function,
//! and writes the source file into it.

use crate::git_files;

#[test]
fn every_snapshot_belongs_to_a_source_file() {
    for path in git_files::ending(".snap") {
        let text = git_files::read(&path);
        let source = text.lines().find_map(|line| line.strip_prefix("source: "));
        let source = source.unwrap_or_else(|| panic!("{path} has no source line"));
        assert!(
            git_files::files().iter().any(|file| file == source),
            "{path} comes from {source}, which does not exist"
        );
    }
}

#[test]
fn no_snapshot_is_pending() {
    let waiting = git_files::ending(".snap.new");
    assert!(waiting.is_empty(), "{waiting:#?}");
}
