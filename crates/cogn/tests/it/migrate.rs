//! `cogn migrate` on real folders: written files, backups and output.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use assert_cmd::Command;
use serde_json::Value;

const V1: &str = "---
name: planner
version: 1.0.0
responsibility: plan small tasks
excludes: [doing them]
---
Plan the task that you are given, in at most five steps, and say for each of them why it is needed.
";

const SCHEMA: &str = r#"{
  "input": { "type": "object", "properties": { "task": { "type": "string" } } },
  "output": {
    "type": "object",
    "required": ["rationale"],
    "properties": { "rationale": { "type": "string" } }
  }
}
"#;

struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("cognitive/modules")).unwrap();
        Self { root }
    }

    fn modules(&self) -> PathBuf {
        self.root.path().join("cognitive/modules")
    }

    fn v1(&self, name: &str) -> PathBuf {
        let path = self.modules().join(name);
        fs::create_dir_all(path.join("assets")).unwrap();
        fs::write(path.join("MODULE.md"), V1.replace("planner", name)).unwrap();
        fs::write(path.join("schema.json"), SCHEMA).unwrap();
        fs::write(path.join("assets/picture.png"), [0u8, 159, 146, 150]).unwrap();
        path
    }

    fn run(&self, args: &[&str]) -> Ran {
        let output = Command::new(env!("CARGO_BIN_EXE_cogn"))
            .args(args)
            .current_dir(self.root.path())
            .env("HOME", self.root.path())
            .env_remove("COGNITIVE_MODULES_PATH")
            .output()
            .unwrap();
        Ran {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.modules())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[derive(Debug)]
struct Ran {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Ran {
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Every file below a folder: bytes and times.
fn contents(root: &Path) -> BTreeMap<PathBuf, (Option<Vec<u8>>, SystemTime)> {
    let mut all = BTreeMap::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(path) = open.pop() {
        let metadata = fs::metadata(&path).unwrap();
        let bytes = metadata.is_file().then(|| fs::read(&path).unwrap());
        if metadata.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        all.insert(path, (bytes, metadata.modified().unwrap()));
    }
    all
}

#[test]
fn module_is_migrated_with_backup() {
    let place = Place::new();
    let path = place.v1("planner");
    let ran = place.run(&["migrate", "planner"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("was v1, is now v2.2"), "{ran:?}");
    assert!(ran.stderr.contains("review module.yaml:4"), "{ran:?}");
    let names = place.names();
    let backup = names
        .iter()
        .find(|name| name.starts_with("planner_backup_"))
        .unwrap();
    assert_eq!(names.len(), 2, "{names:?}");
    // planner_backup_20260102T030405Z
    let stamp = backup.strip_prefix("planner_backup_").unwrap();
    assert!(
        stamp.len() == 16 && stamp.contains('T') && stamp.ends_with('Z'),
        "{stamp}"
    );
    assert_eq!(
        fs::read_to_string(place.modules().join(backup).join("MODULE.md")).unwrap(),
        V1
    );
    assert!(!path.join("MODULE.md").is_file());
    assert_eq!(
        fs::read(path.join("assets/picture.png")).unwrap(),
        [0u8, 159, 146, 150]
    );

    let again = place.run(&["migrate", "planner"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert!(again.stderr.contains("already v2.2"), "{again:?}");
    assert_eq!(place.names(), names, "no change, no backup");
}

#[test]
fn backup_is_not_a_module() {
    let place = Place::new();
    place.v1("planner");
    place.run(&["migrate", "planner"]);
    let listed = place.run(&["list", "--json"]).json();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
}

#[test]
fn dry_run_shows_diff_and_writes_nothing() {
    let place = Place::new();
    place.v1("planner");
    let before = contents(place.root.path());
    let ran = place.run(&["migrate", "planner", "--dry-run", "--to", "2.5"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(contents(place.root.path()), before);
    assert!(
        ran.stdout.contains("--- /dev/null\n+++ b/module.yaml\n"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("--- a/MODULE.md\n+++ /dev/null\n"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("-  \"output\": {\n+  \"data\": {\n"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains('\u{1b}'), "no colour off a terminal");
    insta::assert_snapshot!("migrate_dry_run", ran.stdout);
}

/// Applies a unified diff as `patch -p1` would.
fn apply(folder: &Path, diff: &str) {
    let mut lines = diff.lines().peekable();
    while let Some(line) = lines.next() {
        let old = line
            .strip_prefix("--- ")
            .unwrap_or_else(|| panic!("`{line}` is no header"));
        let new = lines.next().and_then(|line| line.strip_prefix("+++ ")).unwrap();
        let source = fs::read_to_string(folder.join(old.trim_start_matches("a/"))).unwrap_or_default();
        let source: Vec<_> = source.lines().collect();
        let (mut at, mut result) = (0, Vec::new());
        while let Some(line) = lines.next_if(|line| !line.starts_with("--- ")) {
            if let Some(hunk) = line.strip_prefix("@@ -") {
                let start: usize = hunk.split([',', ' ']).next().unwrap().parse().unwrap();
                result.extend_from_slice(&source[at..start.max(1) - 1]);
                at = start.max(1) - 1;
            } else if let Some(added) = line.strip_prefix('+') {
                result.push(added);
            } else {
                let text = line.get(1..).unwrap();
                assert_eq!(source[at], text, "the context fits");
                at += 1;
                if line.starts_with(' ') {
                    result.push(text);
                }
            }
        }
        if new == "/dev/null" {
            fs::remove_file(folder.join(old.trim_start_matches("a/"))).unwrap();
            continue;
        }
        result.extend_from_slice(&source[at..]);
        fs::write(
            folder.join(new.trim_start_matches("b/")),
            result.join("\n") + "\n",
        )
        .unwrap();
    }
}

#[test]
fn diff_equals_the_migration() {
    let place = Place::new();
    let path = place.v1("planner");
    let ran = place.run(&["migrate", "planner", "-n", "-q"]);
    let twin = place.v1("twin");
    fs::write(twin.join("MODULE.md"), V1).unwrap();
    apply(&twin, &ran.stdout);
    place.run(&["migrate", "planner", "--no-backup"]);
    for file in ["module.yaml", "prompt.md", "schema.json"] {
        assert_eq!(
            fs::read_to_string(path.join(file)).unwrap(),
            fs::read_to_string(twin.join(file)).unwrap(),
            "{file}"
        );
    }
    assert!(!twin.join("MODULE.md").is_file());
}

#[test]
fn without_backup_the_old_folder_is_removed() {
    let place = Place::new();
    place.v1("planner");
    let ran = place.run(&["migrate", "planner", "--no-backup", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(place.names(), ["planner"]);
    let module = &ran.json()["modules"][0];
    assert_eq!(module["status"], "migrated");
    assert_eq!(module["backup"], Value::Null);
    assert_eq!(module["from"], "v1");
}

#[test]
fn failing_module_does_not_stop_the_others() {
    let place = Place::new();
    place.v1("alpha");
    let broken = place.v1("broken");
    fs::write(broken.join("MODULE.md"), "---\nname: [\n---\n").unwrap();
    place.v1("omega");
    let ran = place.run(&["migrate", "--all"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.stderr.contains("broken was not migrated: MODULE.md:"),
        "{ran:?}"
    );
    assert!(
        ran.stderr.contains("2 migrated, 0 unchanged, 1 failed"),
        "{ran:?}"
    );
    assert!(place.modules().join("omega/module.yaml").is_file());
    assert!(broken.join("MODULE.md").is_file());
    let again = place.run(&["migrate", "--all", "--json"]).json();
    let statuses: Vec<_> = again["modules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["status"].clone())
        .collect();
    assert_eq!(statuses, ["already", "refused", "already"]);
}

#[test]
fn manual_decisions_are_reported_and_counted() {
    let place = Place::new();
    let path = place.v1("planner");
    let closed = r#"{"input": {"type": "object"}, "output": {"oneOf": [{"type": "object", "additionalProperties": false}]}}"#;
    fs::write(path.join("schema.json"), closed).unwrap();
    let ran = place.run(&["migrate", "planner", "-q"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("decide schema.json:1:"), "{ran:?}");
    assert!(
        !ran.stderr.contains("review"),
        "quiet leaves out what can wait: {ran:?}"
    );
}

#[test]
fn newer_module_is_unchanged() {
    let place = Place::new();
    place.v1("planner");
    assert_eq!(
        place
            .run(&["migrate", "planner", "--to", "2.5", "--no-backup"])
            .code,
        0
    );
    let ran = place.run(&["migrate", "planner", "--to", "v2.2"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("already newer: v2.5"), "{ran:?}");
}

#[test]
fn module_in_current_folder_can_be_migrated() {
    let place = Place::new();
    let path = place.v1("planner");
    let output = Command::new(env!("CARGO_BIN_EXE_cogn"))
        .args(["migrate", "."])
        .current_dir(&path)
        .env("HOME", place.root.path())
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("planner: was v1, is now v2.2"), "{stderr}");
    assert!(stderr.contains("still in the old folder"), "{stderr}");
    assert!(path.join("module.yaml").is_file());
}

#[cfg(unix)]
#[test]
fn linked_module_is_migrated_at_its_target() {
    let place = Place::new();
    let real = place.root.path().join("elsewhere");
    fs::rename(place.v1("planner"), &real).unwrap();
    std::os::unix::fs::symlink(&real, place.modules().join("planner")).unwrap();
    let ran = place.run(&["migrate", "planner"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        fs::symlink_metadata(place.modules().join("planner"))
            .unwrap()
            .is_symlink()
    );
    assert!(real.join("module.yaml").is_file());
    assert_eq!(
        place.names(),
        ["planner"],
        "the backup is next to the real folder"
    );
}

#[test]
fn usage_and_io_errors_exit_with_2() {
    let place = Place::new();
    place.v1("planner");
    for args in [
        &["migrate"][..],
        &["migrate", "no-such-module"],
        &["migrate", "planner", "--to", "2.1"],
        &["migrate", "planner", "--all"],
    ] {
        let ran = place.run(args);
        assert_eq!(ran.code, 2, "{args:?}: {ran:?}");
    }
}

#[test]
fn interrupted_migration_is_completed_or_undone_by_the_next() {
    let place = Place::new();
    let path = place.v1("planner");
    // State after a crash on a file system without atomic exchange: the old folder was deleted, the new one is
    // not yet in place.
    fs::rename(&path, place.modules().join("planner_backup_20260102T030405Z")).unwrap();
    place.v1("other");
    let ready = place.modules().join(".planner.cogn-ready.20260102T030405Z.7");
    fs::rename(place.modules().join("other"), ready).unwrap();
    fs::create_dir(place.modules().join(".planner.cogn-part")).unwrap();
    let ran = place.run(&["migrate", "planner"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.stderr.contains("completed an interrupted migration"),
        "{ran:?}"
    );
    assert!(
        !place.names().iter().any(|name| name.starts_with('.')),
        "{:?}",
        place.names()
    );
}

/// Killed at a random moment: the module's path always contains a complete module.
#[cfg(unix)]
#[test]
fn killed_migration_leaves_a_complete_module() {
    let place = Place::new();
    let path = place.v1("planner");
    for number in 0..300 {
        fs::write(path.join(format!("assets/{number}.bin")), [1; 2000]).unwrap();
    }
    let mut killed = 0;
    for round in 0..12u64 {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_cogn"))
            .args(["migrate", "planner", "--no-backup"])
            .current_dir(place.root.path())
            .env("HOME", place.root.path())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        #[expect(clippy::disallowed_methods, reason = "the point is to strike at some moment")]
        std::thread::sleep(std::time::Duration::from_millis(1 + round * 3));
        killed += usize::from(child.kill().is_ok());
        child.wait().unwrap();
        let old = path.join("MODULE.md").is_file();
        let new = path.join("module.yaml").is_file();
        assert!(old != new, "round {round}: old {old}, new {new}");
        assert_eq!(
            fs::read_dir(path.join("assets")).unwrap().count(),
            301,
            "round {round}"
        );
        if new {
            break;
        }
    }
    assert!(killed > 0);
    let ran = place.run(&["migrate", "planner", "--no-backup"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let hidden: Vec<_> = place
        .names()
        .into_iter()
        .filter(|name| name.starts_with('.'))
        .collect();
    assert!(hidden.is_empty(), "{hidden:?}");
}
