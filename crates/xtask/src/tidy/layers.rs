//! The layer table. ARCHITECTURE.md shows it as a diagram; this test enforces it against `cargo metadata`.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

/// Crate, workspace crates it may use, foreign crates it must not use.
const LAYERS: &[(&str, &[&str], &[&str])] = &[
    ("ir", &[], IO),
    ("module", &["ir"], IO),
    ("tenancy", &["ir"], IO),
    ("media", &["ir"], IO),
    ("wire", &["ir"], IO),
    ("spill", &["ir"], &["rusqlite", "reqwest", "axum"]),
    (
        "engine",
        &["ir", "module", "media", "tenancy", "spill"],
        &["rusqlite", "reqwest", "axum"],
    ),
    (
        "providers",
        &["ir", "wire", "tenancy", "spill", "engine"],
        &["rusqlite", "axum"],
    ),
    ("local", &["ir", "engine"], &["rusqlite", "axum", "reqwest"]),
    ("store", &["ir", "tenancy", "engine"], &["axum", "reqwest"]),
    (
        "gateway",
        &["ir", "module", "wire", "tenancy", "spill", "engine"],
        &["rusqlite", "reqwest"],
    ),
    (
        "cogn",
        &[
            "ir",
            "module",
            "media",
            "wire",
            "tenancy",
            "spill",
            "engine",
            "providers",
            "local",
            "store",
            "gateway",
        ],
        &[],
    ),
    (
        "testkit",
        &["ir", "module", "wire", "tenancy", "engine", "providers"],
        &[],
    ),
    ("xtask", &[], &[]),
    ("loadtest", &[], &[]),
];

/// Crates for IO, which pure crates must not use.
const IO: &[&str] = &[
    "tokio", "reqwest", "axum", "rusqlite", "hyper", "rand", "tempfile", "ureq",
];

#[test]
fn crates_depend_only_downwards() {
    let packages = packages();
    for name in packages.keys() {
        assert!(
            LAYERS.iter().any(|(known, ..)| known == name),
            "crate {name} has no row in the layer table"
        );
    }
    for (name, allowed, forbidden) in LAYERS {
        let Some(used) = packages.get(*name) else {
            panic!("the layer table lists {name}, which does not exist")
        };
        for dependency in used {
            let ours = LAYERS.iter().any(|(known, ..)| known == dependency);
            assert!(
                !ours || allowed.contains(&dependency.as_str()),
                "{name} must not depend on {dependency}"
            );
            assert!(
                !forbidden.contains(&dependency.as_str()),
                "{name} must not use {dependency}"
            );
        }
    }
}

/// Workspace members with the names of their normal and build dependencies. Dev-dependencies are not
/// restricted.
fn packages() -> BTreeMap<String, Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--locked"])
        .output()
        .expect("cargo metadata runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let text = |value: &Value| String::from(value.as_str().unwrap_or_default());
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    list(&metadata["packages"])
        .iter()
        .map(|package| {
            let used = list(&package["dependencies"]);
            let used = used
                .iter()
                .filter(|dependency| dependency["kind"] != "dev")
                .map(|d| text(&d["name"]));
            (text(&package["name"]), used.collect())
        })
        .collect()
}
