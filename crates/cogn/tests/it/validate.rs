//! `cogn validate`: output formats, exit codes, and protection against harmful folders.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::workspace::{MANIFEST, PROMPT, SCHEMA, Workspace};

/// A module with an error in each of its files.
fn broken() -> Workspace {
    let workspace = Workspace::new();
    workspace.module(
        "broken",
        &[
            (
                "module.yaml",
                "name: broken\nversion: 1.0\nresponsibility: say, 100% wrong\ntier: desicion\noverflow: {max_items: 50}\n",
            ),
            ("prompt.md", "Sort $INPTU.\n"),
            (
                "schema.json",
                "{\n  \"input\": { \"type\": \"objekt\" },\n  \"data\": { \"$ref\": \"https://example.org/data.json\" }\n}\n",
            ),
            ("tests/a.input.json", "{\"text\": }\n"),
        ],
    );
    workspace
}

#[test]
fn human_output_shows_source_lines_and_fix() {
    let ran = broken().run(&["validate", "broken"]);
    assert_eq!(ran.code(), 1);
    insta::assert_snapshot!("validate_human", ran.stdout());
}

#[test]
fn json_output_is_one_document() {
    let workspace = broken();
    workspace.good("good");
    let ran = workspace.run(&["validate", "broken", "good", "--json"]);
    assert_eq!(ran.code(), 1);
    let document = ran.json();
    assert_eq!(document["version"], 1);
    assert_eq!(document["modules"][0]["ok"], false);
    assert_eq!(document["modules"][1]["ok"], true);
    assert_eq!(document["modules"][1]["diagnostics"], Value::Array(Vec::new()));
    let text = serde_json::to_string_pretty(&document).expect("JSON");
    insta::assert_snapshot!("validate_json", text);
}

#[test]
fn github_output_is_escaped() {
    let ran = broken().run(&["validate", "broken", "--format", "github"]);
    assert_eq!(ran.code(), 1);
    insta::assert_snapshot!("validate_github", ran.stdout());
}

#[test]
fn sarif_output_for_code_scanning() {
    let ran = broken().run(&["validate", "broken", "--format", "sarif"]);
    assert_eq!(ran.code(), 1);
    let mut document = ran.json();
    let driver = &mut document["runs"][0]["tool"]["driver"];
    let rules = driver["rules"].as_array().expect("rules").clone();
    for result in document["runs"][0]["results"].as_array().expect("results") {
        let index = usize::try_from(result["ruleIndex"].as_u64().expect("an index")).expect("a small one");
        assert_eq!(rules[index]["id"], result["ruleId"]);
    }
    document["runs"][0]["tool"]["driver"]["rules"] = Value::from(format!("{} rules", rules.len().min(80)));
    document["runs"][0]["tool"]["driver"]["version"] = Value::from("VERSION");
    let text = serde_json::to_string_pretty(&document).expect("JSON");
    insta::assert_snapshot!("validate_sarif", text);
}

#[test]
fn exit_codes_distinguish_valid_invalid_and_usage_error() {
    let workspace = broken();
    workspace.good("good");
    assert_eq!(workspace.run(&["validate", "good", "--v22"]).code(), 0);
    assert_eq!(workspace.run(&["validate", "good", "--v25"]).code(), 1);
    assert_eq!(workspace.run(&["validate", "good", "broken"]).code(), 1);
    assert_eq!(workspace.run(&["validate", "nowhere"]).code(), 2);
    assert_eq!(workspace.run(&["validate", "good", "--format", "xml"]).code(), 2);
    assert_eq!(workspace.run(&["validate", "good", "--v22", "--v25"]).code(), 2);
    assert_eq!(workspace.run_in("good", &["validate"]).code(), 0);
    let ran = workspace.run(&["validate"]);
    assert_eq!(ran.code(), 2);
    assert!(ran.stderr().contains("hint: give a module"), "{}", ran.stderr());
    let ran = workspace.run(&["validate", "--all"]);
    assert_eq!((ran.code(), ran.stdout().as_str()), (2, ""));
    assert!(ran.stderr().contains("cognitive/modules"), "{}", ran.stderr());
}

#[test]
fn all_validates_every_module_that_is_not_hidden() {
    let workspace = Workspace::new();
    workspace.good("cognitive/modules/one");
    workspace.good("cognitive/modules/two");
    workspace.module("home/.cognitive/modules/two", &[("module.yaml", "broken: [")]);
    let ran = workspace.run(&["validate", "--all"]);
    assert_eq!(ran.code(), 0, "{}", ran.stdout());
    assert_eq!(
        ran.stdout(),
        "2 modules: no errors, no warnings (1 hidden module not checked)\n"
    );
    assert_eq!(workspace.run(&["validate", "--all", "-q"]).stdout(), "");
}

#[test]
fn required_modules_are_resolved_among_siblings() {
    let workspace = Workspace::new();
    let requires = |name: &str, other: &str| {
        format!(
            "{}composition: {{requires: [{{name: {other}}}]}}\n",
            MANIFEST.replace("NAME", name)
        )
    };
    for (name, other) in [("a", "b"), ("b", "a"), ("c", "nobody")] {
        let path = format!("cognitive/modules/{name}");
        workspace.good(&path);
        workspace.module(&path, &[("module.yaml", &requires(name, other))]);
    }
    let ran = workspace.run(&["validate", "--all", "--format", "github"]);
    assert_eq!(ran.code(), 1);
    let text = ran.stdout();
    assert!(text.contains("a → b → a"), "{text}");
    assert!(text.contains("b → a → b"), "{text}");
    assert!(text.contains("`nobody` cannot be found"), "{text}");
    // Siblings are found even outside the search path.
    fs::rename(
        workspace.path().join("cognitive/modules"),
        workspace.path().join("elsewhere"),
    )
    .expect("a move");
    assert!(
        workspace
            .run(&["validate", "elsewhere/a"])
            .stdout()
            .contains("a → b → a")
    );
}

/// The codes that a folder gets.
fn codes(workspace: &Workspace, module: &str) -> Vec<String> {
    let started = Instant::now();
    let ran = workspace.run(&["validate", module, "--json"]);
    assert!(started.elapsed() < Duration::from_secs(10), "too slow");
    assert_eq!(ran.code(), 1, "{}{}", ran.stdout(), ran.stderr());
    let found = &ran.json()["modules"][0]["diagnostics"];
    let found = found.as_array().expect("diagnostics");
    found
        .iter()
        .map(|row| String::from(row["code"].as_str().expect("a code")))
        .collect()
}

#[cfg(unix)]
#[test]
fn links_are_followed_only_inside_the_folder() {
    use std::os::unix::fs::symlink;
    let workspace = Workspace::new();
    let folder = workspace.good("m");
    fs::remove_file(folder.join("prompt.md")).expect("it was there");
    fs::write(workspace.path().join("secret.md"), PROMPT).expect("a file");
    symlink("../secret.md", folder.join("prompt.md")).expect("a link");
    assert_eq!(codes(&workspace, "m"), ["M1007"]);

    fs::remove_file(folder.join("prompt.md")).expect("it was there");
    symlink("prompt.md", folder.join("prompt.md")).expect("a link");
    assert_eq!(codes(&workspace, "m"), ["M1008"]);

    fs::remove_file(folder.join("prompt.md")).expect("it was there");
    symlink("nowhere.md", folder.join("prompt.md")).expect("a link");
    assert_eq!(codes(&workspace, "m"), ["M1003"]);

    fs::remove_file(folder.join("prompt.md")).expect("it was there");
    fs::write(folder.join("real.md"), PROMPT).expect("a file");
    symlink("real.md", folder.join("prompt.md")).expect("a link");
    assert_eq!(workspace.run(&["validate", "m"]).code(), 0);

    symlink(".", folder.join("assets")).expect("a link");
    assert_eq!(codes(&workspace, "m"), ["M1008"]);
}

#[cfg(unix)]
#[test]
fn named_pipe_is_not_read() {
    let workspace = Workspace::new();
    let folder = workspace.good("m");
    for name in ["prompt.md", "module.yaml"] {
        fs::remove_file(folder.join(name)).expect("it was there");
        let made = std::process::Command::new("mkfifo")
            .arg(folder.join(name))
            .status();
        assert!(made.expect("mkfifo runs").success());
        assert!(codes(&workspace, "m").contains(&String::from("M1003")));
    }
}

#[test]
fn folder_in_place_of_a_file_is_reported() {
    let workspace = Workspace::new();
    let folder = workspace.good("m");
    fs::remove_file(folder.join("schema.json")).expect("it was there");
    fs::create_dir(folder.join("schema.json")).expect("a folder");
    assert_eq!(codes(&workspace, "m"), ["M1003"]);
}

#[test]
fn file_of_100_mib_is_not_read() {
    let workspace = Workspace::new();
    let folder = workspace.good("m");
    for name in ["schema.json", "prompt.md", "module.yaml"] {
        let file = fs::File::create(folder.join(name)).expect("a file");
        file.set_len(100 * 1024 * 1024).expect("a sparse file");
        assert!(codes(&workspace, "m").contains(&String::from("M1004")), "{name}");
    }
}

#[test]
fn folder_with_too_many_files_is_aborted_early() {
    let workspace = Workspace::new();
    let folder = workspace.good("m");
    let many = folder.join("zeros");
    fs::create_dir(&many).expect("a folder");
    for index in 0..2_100 {
        fs::write(many.join(format!("{index}.bin")), "").expect("a file");
    }
    assert_eq!(codes(&workspace, "m"), ["M1009"]);
}

#[test]
fn too_deeply_nested_folders_are_aborted_early() {
    let workspace = Workspace::new();
    let folder = workspace.good("m");
    fs::create_dir_all(folder.join("d/".repeat(40))).expect("folders");
    assert_eq!(codes(&workspace, "m"), ["M1009"]);
}

#[test]
fn invalid_encodings_are_reported() {
    let workspace = Workspace::new();
    let folder = workspace.good("m");
    let mut text = b"\xef\xbb\xbf".to_vec();
    text.extend_from_slice(SCHEMA.replace('\n', "\r\n").as_bytes());
    fs::write(folder.join("schema.json"), text).expect("a file");
    assert_eq!(workspace.run(&["validate", "m"]).code(), 0);
    fs::write(folder.join("schema.json"), b"{\"input\": \"\xff\"}").expect("a file");
    fs::write(folder.join("prompt.md"), b"a\0b").expect("a file");
    assert_eq!(codes(&workspace, "m"), ["M1012", "M1005"]);
    fs::write(folder.join("module.yaml"), "").expect("a file");
    assert!(codes(&workspace, "m").contains(&String::from("M2004")));
}
