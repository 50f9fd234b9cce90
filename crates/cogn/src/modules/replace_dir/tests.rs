//! Crash tests: kills a migration before every step and checks the state after it and after recovery.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use module::migrate::plan;
use module::{FileMap, Format};

use super::{
    Backup, ReplacePaths, ReplaceStep, Replacement, SwapFn, carry_out, exchange, read_folder, recover,
    replace,
};

const STAMP: &str = "20260102T030405Z";

struct Bench {
    _root: tempfile::TempDir,
    path: PathBuf,
    before: FileMap,
    after: FileMap,
}

/// A v1 module with assets, hidden files, links and an empty folder.
fn bench() -> Bench {
    // In memory if available: the order of steps is tested, not the disk.
    let root = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let root = root.expect("a folder");
    let path = fs::canonicalize(root.path()).expect("it is real").join("planner");
    let write = |file: &str, text: &str| {
        let file = path.join(file);
        fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
        fs::write(file, text).expect("a file");
    };
    write(
        "MODULE.md",
        "---\nname: planner\nversion: 1.0.0\nresponsibility: plan\n---\nPlan it.\n",
    );
    write(
        "schema.json",
        "{\"input\": {\"type\": \"object\"}, \"output\": {\"type\": \"object\"}}\n",
    );
    write("examples/input.json", "{}\n");
    write("examples/output.json", "{\"rationale\": \"none\"}\n");
    write("assets/picture.png", "not really");
    write(".hidden", "kept");
    fs::create_dir(path.join("empty")).expect("a folder");
    #[cfg(unix)]
    {
        use std::os::unix::fs::{PermissionsExt, symlink};
        symlink("assets/picture.png", path.join("cover.png")).expect("a link");
        symlink("nowhere", path.join("dangling")).expect("a link");
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(path.join("assets/picture.png"), mode).expect("a mode");
    }
    let before = read_folder(&path).expect("it reads");
    let after = plan(&before, Format::V2_2).expect("it can be migrated").files;
    Bench {
        _root: root,
        path,
        before,
        after,
    }
}

impl Bench {
    fn work(&self, backup: Backup) -> Replacement<'_> {
        Replacement {
            path: &self.path,
            before: &self.before,
            after: &self.after,
            backup,
            stamp: STAMP,
        }
    }

    fn parent(&self) -> &Path {
        self.path.parent().expect("a parent")
    }

    fn beside(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.parent())
            .expect("it lists")
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .into_string()
                    .expect("a name")
            })
            .collect();
        names.sort();
        names
    }
}

fn no_exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Runs until the step with this number and fails there. Returns whether it finished, and the steps.
fn run_until(bench: &Bench, backup: Backup, exchange: SwapFn, fatal: usize) -> (bool, Vec<ReplaceStep>) {
    let work = bench.work(backup);
    let places = ReplacePaths::of(&work).expect("names");
    let mut steps = Vec::new();
    let done = carry_out(&work, &places, exchange, &mut |step| {
        steps.push(step);
        if steps.len() > fatal {
            return Err(io::Error::other("killed"));
        }
        Ok(())
    });
    (done.is_ok(), steps)
}

#[test]
fn crash_leaves_old_or_new_module() {
    for backup in [Backup::Keep, Backup::Discard] {
        for exchange in [exchange as SwapFn, no_exchange] {
            let mut fatal = 0;
            loop {
                let bench = bench();
                let (finished, steps) = run_until(&bench, backup, exchange, fatal);
                let last = steps.last().copied();
                // Only without an exchange operation can the path be missing.
                if last != Some(ReplaceStep::MoveNewIn) {
                    let found = read_folder(&bench.path).expect("a module");
                    assert!(found == bench.before || found == bench.after, "after {steps:?}");
                }
                recover(bench.parent(), "planner").expect("recovery succeeds");
                let found = read_folder(&bench.path).expect("a module");
                assert!(
                    found == bench.before || found == bench.after,
                    "recovered after {steps:?}"
                );
                let hidden: Vec<_> = bench
                    .beside()
                    .into_iter()
                    .filter(|name| name.starts_with('.'))
                    .collect();
                assert!(hidden.is_empty(), "{hidden:?} after {steps:?}");
                // With `Backup::Keep`, the new module implies that the backup exists.
                let kept = bench
                    .beside()
                    .iter()
                    .any(|name| name.starts_with("planner_backup_"));
                assert!(
                    kept || backup == Backup::Discard || found == bench.before,
                    "after {steps:?}"
                );
                if finished {
                    assert_eq!(found, bench.after);
                    break;
                }
                fatal += 1;
                assert!(fatal < 100, "it never finishes");
            }
            assert!(fatal > 12, "every file is a step");
        }
    }
}

#[test]
fn failure_removes_temporary_folders() {
    let bench = bench();
    let mut wrong = bench.after.clone();
    // A plan that does not match the folder, as after a concurrent change.
    wrong.insert(
        "assets/picture.png",
        module::file_map::Entry::Listed {
            size_bytes: 1,
            head: Vec::new(),
        },
    );
    let work = Replacement {
        after: &wrong,
        ..bench.work(Backup::Keep)
    };
    let error = replace(&work).expect_err("the replacement must fail");
    assert!(error.to_string().contains("changed while"), "{error:#}");
    assert_eq!(bench.beside(), ["planner"]);
    assert_eq!(read_folder(&bench.path).expect("a module"), bench.before);
}

#[test]
fn backup_preserves_all_files() {
    let bench = bench();
    let backup = replace(&bench.work(Backup::Keep))
        .expect("it works")
        .expect("a backup");
    assert_eq!(bench.beside(), ["planner", "planner_backup_20260102T030405Z"]);
    assert_eq!(read_folder(&backup).expect("a module"), bench.before);
    assert_eq!(read_folder(&bench.path).expect("a module"), bench.after);
    assert_eq!(
        fs::read_to_string(bench.path.join(".hidden")).expect("it is there"),
        "kept"
    );
    assert!(bench.path.join("empty").is_dir());
    assert!(!bench.path.join("examples").is_dir(), "all of it moved");
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let link = fs::read_link(bench.path.join("cover.png")).expect("a link");
        assert_eq!(link, Path::new("assets/picture.png"));
        assert!(fs::read_link(bench.path.join("dangling")).is_ok());
        let new = fs::metadata(bench.path.join("assets/picture.png")).expect("it is there");
        let old = fs::metadata(backup.join("assets/picture.png")).expect("it is there");
        assert_eq!(new.permissions().mode() & 0o777, 0o755);
        assert_eq!(new.modified().ok(), old.modified().ok());
        assert_ne!(new.ino(), old.ino(), "writing to one must not change the other");
    }
}

#[test]
fn backups_of_same_second_get_distinct_names() {
    let bench = bench();
    fs::create_dir(bench.parent().join("planner_backup_20260102T030405Z")).expect("a folder");
    let backup = replace(&bench.work(Backup::Keep))
        .expect("it works")
        .expect("a backup");
    assert!(backup.ends_with("planner_backup_20260102T030405Z-2"));
}

#[test]
fn concurrent_migration_is_rejected() {
    let bench = bench();
    let _held = super::lock(bench.parent()).expect("a lock");
    let error = replace(&bench.work(Backup::Keep)).expect_err("the folder is locked");
    assert!(error.to_string().contains("another migration"), "{error:#}");
    assert_eq!(bench.beside(), ["planner"]);
}
