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

/// The new module passes its checks and its test without an edit, a key or a back-end.
#[test]
fn fields_and_examples_become_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let example = r#"{"ok": true, "data": {"vendor": "Acme", "total": 9.5, "lines": [{"text": "a"}, {"text": "b", "tax": 7}]}}"#;
    fs::write(folder.path().join("output.json"), example).unwrap();
    fs::write(folder.path().join("list.json"), "[1]").unwrap();
    let by_fields = [
        "--field",
        "vendor:string",
        "--field",
        "items:list",
        "--field",
        "kind:bill|offer",
        "--field",
        "note:string?",
    ];
    let by_example = ["--from-example", "output.json"];
    let media = [
        "--input",
        "image,audio,document",
        "--tier",
        "exec",
        "--field",
        "label:a|b",
    ];
    for (name, more) in [
        ("by-fields", &by_fields[..]),
        ("by-example", &by_example),
        ("media", &media),
        ("plain", &[]),
    ] {
        let ran = run(folder.path(), &[&["new", name], more].concat());
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
        let validated = run(folder.path(), &["validate", name]);
        assert_eq!(
            validated.code, 0,
            "{name}: {}{}",
            validated.stdout, validated.stderr
        );
        assert!(
            validated.stdout.contains("no errors, no warnings"),
            "{name}: {}",
            validated.stdout
        );
        let tested = run(folder.path(), &["test", name]);
        assert_eq!(tested.code, 0, "{name}: {}", tested.stdout);
        assert!(tested.stdout.contains("1 passed"), "{name}: {}", tested.stdout);
    }
    let schema = |name: &str| -> Value {
        let path = folder
            .path()
            .join(format!("cognitive/modules/{name}/schema.json"));
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
    };
    let fields = &schema("by-fields")["data"];
    assert_eq!(
        fields["required"],
        serde_json::json!(["vendor", "items", "kind", "rationale"])
    );
    assert_eq!(
        fields["properties"]["kind"]["enum"],
        serde_json::json!(["bill", "offer"])
    );
    let line = &schema("by-example")["data"]["properties"]["lines"]["items"];
    assert_eq!(line["required"], serde_json::json!(["text"]));
    let refused = run(folder.path(), &["new", "x", "--from-example", "list.json"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("not a JSON object"), "{}", refused.stderr);
    assert!(!folder.path().join("cognitive/modules/x").try_exists().unwrap());
}

#[test]
fn display_names_of_any_script_have_a_folder_name() {
    let folder = tempfile::tempdir().unwrap();
    for (args, name, title) in [
        (
            &["new", "Rechnungen prüfen"][..],
            "rechnungen-pruefen",
            "# Rechnungen prüfen\n",
        ),
        (
            &["new", "发票审核", "--name", "invoice-review"],
            "invoice-review",
            "# 发票审核\n",
        ),
    ] {
        let ran = run(folder.path(), args);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(ran.stdout, format!("cognitive/modules/{name}\n"));
        let prompt = folder
            .path()
            .join("cognitive/modules")
            .join(name)
            .join("prompt.md");
        assert!(fs::read_to_string(prompt).unwrap().starts_with(title));
        assert_eq!(run(folder.path(), &["validate", name]).code, 0);
        assert_eq!(run(folder.path(), &["test", name]).code, 0);
    }
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
    assert_eq!(made["files"].as_array().unwrap().len(), 6);
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
        (&["new", "审查"], "give one with --name"),
        (&["new", "x", "--field", "vendor:text"], "types: string, number"),
        (
            &["new", "x", "--field", "a:list", "--field", "a"],
            "give each field once",
        ),
        (&["new", "x", "--field", "${text}:string"], "vendor:string"),
        (&["new", "x", "--name", "Y y"], "did you mean `y-y`?"),
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
