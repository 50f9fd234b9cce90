//! `cogn new`: created modules and refused arguments.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

struct Ran {
    code: i32,
    stdout: String,
    stderr: String,
}

fn run(folder: &Path, args: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_cogn"))
        .args(args)
        .current_dir(folder)
        .env("HOME", folder)
        .env_remove("COGNITIVE_MODULES_PATH")
        .output()
        .unwrap();
    Ran {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn new_module_is_found_and_valid() {
    let folder = tempfile::tempdir().unwrap();
    for tier in ["exec", "decision", "exploration"] {
        for (format, input) in [
            ("2.2", "text"),
            ("2.5", "text"),
            ("2.5", "image,audio"),
            ("2.5", "video,document"),
        ] {
            let name = format!("{tier}-{}", format!("{format}-{input}").replace(['.', ','], "-"));
            let args = ["new", &name, "--tier", tier, "--format", format, "--input", input];
            let ran = run(folder.path(), &args);
            assert_eq!(ran.code, 0, "{}", ran.stderr);
            assert_eq!(ran.stdout, format!("cognitive/modules/{name}\n"));
            let migrated = run(folder.path(), &["migrate", &name, "--to", format, "--json"]);
            assert_eq!(migrated.code, 0, "{}", migrated.stdout);
            let migrated: Value = serde_json::from_str(&migrated.stdout).unwrap();
            assert_eq!(migrated["modules"][0]["status"], "already", "{migrated:#}");
        }
    }
    let listed: Value = serde_json::from_str(&run(folder.path(), &["list", "--json"]).stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 12);
}

#[test]
fn json_lists_written_files() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &["new", "sorter", "--dir", "here", "--json"]);
    let made: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(made["path"], "here/sorter");
    for file in made["files"].as_array().unwrap() {
        assert!(
            folder
                .path()
                .join("here/sorter")
                .join(file.as_str().unwrap())
                .is_file()
        );
    }
    assert_eq!(made["files"].as_array().unwrap().len(), 5);
}

#[test]
fn nothing_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(
        run(folder.path(), &["new", "sorter", "--responsibility", "first"]).code,
        0
    );
    let manifest = folder.path().join("cognitive/modules/sorter/module.yaml");
    let before = fs::read(&manifest).unwrap();
    let ran = run(folder.path(), &["new", "sorter", "--responsibility", "second"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("already exists"), "{}", ran.stderr);
    assert_eq!(fs::read(&manifest).unwrap(), before);
}

#[test]
fn invalid_arguments_are_refused_with_a_fix() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(201);
    for (args, hint) in [
        (&["new"][..], "cogn new my-module"),
        (&["new", "MyModule"], "did you mean `my-module`?"),
        (&["new", "../out"], "did you mean `out`?"),
        (&["new", "审查"], "such as `code-reviewer`"),
        (&["new", "core-x"], "did you mean `x`?"),
        (
            &["new", "a", "--format", "2.2", "--input", "image"],
            "--format 2.5",
        ),
        (&["new", "a", "--responsibility", ""], "--responsibility"),
        (&["new", "a", "--responsibility", &long], "--responsibility"),
        (&["new", "a", "--tier", "boss"], "exploration"),
        (&["new", "a", "--format", "3"], "2.2 or 2.5"),
    ] {
        let ran = run(folder.path(), args);
        assert_eq!(ran.code, 2, "{args:?}");
        assert!(ran.stderr.contains(hint), "{args:?}: {}", ran.stderr);
    }
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        0,
        "nothing was written"
    );
}
