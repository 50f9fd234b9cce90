//! `cogn list`: modules found, shadowed and broken.

use serde_json::json;

use crate::workspace::Workspace;

#[test]
fn modules_are_listed_in_search_order() {
    let workspace = Workspace::new();
    workspace.good("cognitive/modules/one");
    workspace.module("cognitive/modules/two", &[("module.yaml", "name: [")]);
    workspace.good("home/.cognitive/modules/one");
    workspace.module(
        "cognitive/modules/one_backup_20260101T000000Z",
        &[("module.yaml", "name: x")],
    );
    workspace.module("cognitive/modules/no-module", &[("README.md", "x")]);
    let ran = workspace.run(&["list", "--json"]);
    assert_eq!(ran.code(), 0);
    let rows = ran.json();
    let names: Vec<_> = rows
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| &row["name"])
        .collect();
    assert_eq!(names, ["one", "two", "one"]);
    assert_eq!(rows[0]["version"], "1.0.0");
    assert_eq!(rows[0]["response_mode"], "both");
    assert_eq!(rows[0]["shadowed_by"], json!(null));
    assert_eq!(rows[0]["broken"], json!(null));
    assert!(rows[1]["broken"].is_string());
    assert_eq!(rows[2]["shadowed_by"], "cognitive/modules/one");
    let text = workspace.run(&["list"]).stdout();
    assert!(text.contains("(broken: "), "{text}");
    assert!(text.contains("(hidden by cognitive/modules/one)"), "{text}");
}

#[test]
fn searched_folders_are_named_if_nothing_is_found() {
    let workspace = Workspace::new();
    std::fs::create_dir_all(workspace.path().join("empty")).expect("a folder");
    let ran = workspace.run(&["list", "--modules", "empty"]);
    assert_eq!((ran.code(), ran.stdout().as_str()), (0, ""));
    let text = ran.stderr();
    for part in [
        "empty (no modules)",
        "cognitive/modules (does not exist)",
        "home/.cognitive/modules (does not exist)",
        "cogn new NAME",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(workspace.run(&["list", "--json"]).json(), json!([]));
}

#[test]
fn named_folder_must_exist() {
    let workspace = Workspace::new();
    workspace.good("cognitive/modules/one");
    let ran = workspace.run(&["list", "--modules", "modles"]);
    assert_eq!(ran.code(), 2);
    assert!(
        ran.stderr().contains("folder not found: modles"),
        "{}",
        ran.stderr()
    );
}
