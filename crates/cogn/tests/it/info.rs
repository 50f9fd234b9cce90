//! `cogn info`: the properties of a module, defaults included.

use crate::workspace::{MANIFEST, Workspace};

#[test]
fn every_fact_is_shown_with_defaults() {
    let workspace = Workspace::new();
    workspace.good("sorter");
    let ran = workspace.run(&["info", "sorter", "--json"]);
    assert_eq!(ran.code(), 0);
    let text = serde_json::to_string_pretty(&ran.json()).expect("JSON");
    insta::assert_snapshot!("info_json", text);
    insta::assert_snapshot!("info_human", workspace.run(&["info", "sorter"]).stdout());
}

#[test]
fn unreadable_module_is_an_error() {
    let workspace = Workspace::new();
    workspace.module("m", &[("module.yaml", "name: [")]);
    let ran = workspace.run(&["info", "m"]);
    assert_eq!(ran.code(), 2);
    assert!(ran.stderr().contains("cogn validate m"), "{}", ran.stderr());
}

#[test]
fn problems_are_counted_as_by_validate() {
    let workspace = Workspace::new();
    let folder = workspace.good("sorter");
    let manifest = MANIFEST.replace("NAME", "sorter").replace("strict}", "often}");
    std::fs::write(folder.join("module.yaml"), manifest).expect("a manifest");
    let validated = workspace.run(&["validate", "sorter", "--json"]).json();
    let shown = workspace.run(&["info", "sorter", "--json"]).json();
    assert_eq!(shown["errors"], validated["summary"]["errors"]);
    assert_eq!(shown["errors"], 1);
}
