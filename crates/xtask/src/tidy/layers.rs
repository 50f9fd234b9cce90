//! The layer table. ARCHITECTURE.md shows it as a diagram; these tests enforce it against `cargo metadata` for direct
//! dependencies, against `cargo tree` for all others, and against the lints of crates without IO.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::git_files;
use crate::shell::{capture, cargo};

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

/// Indirect dependencies that a row forbids, with the reason why they cause no IO.
const UNUSED: &[(&str, &str, &str)] = &[(
    "media",
    "rand",
    "lopdf draws keys for documents that it encrypts; only reading is used",
)];

/// The lints of crates without IO, in addition to those of all crates.
const PURE_LINTS: &str = "clippy.pure.toml";

#[test]
fn forbidden_crates_are_no_indirect_dependencies() {
    for (name, _, forbidden) in LAYERS.iter().filter(|(.., forbidden)| !forbidden.is_empty()) {
        let used = tree(name);
        for dependency in *forbidden {
            let is_unused = UNUSED
                .iter()
                .any(|(owner, known, _)| owner == name && known == dependency);
            assert!(
                is_unused || !used.contains(*dependency),
                "{name} must not use {dependency}; see `cargo tree -p {name} -i {dependency}`"
            );
        }
    }
    for (name, dependency, reason) in UNUSED {
        assert!(
            tree(name).contains(*dependency),
            "{name} lacks {dependency} ({reason}): strike it from the list"
        );
    }
}

/// All dependencies of a crate with all its features, except those of its tests.
fn tree(name: &str) -> BTreeSet<String> {
    let arguments = "tree --all-features --locked --prefix none --edges normal,build --package";
    let list = capture(cargo(arguments.split(' ')).arg(name)).expect("cargo tree runs");
    let names = list.lines().filter_map(|line| line.split(' ').next());
    let names: BTreeSet<_> = names.map(String::from).collect();
    assert!(names.contains(name), "cargo tree lists nothing for {name}");
    names
}

/// A crate whose row forbids IO is linted by the rules of such crates, which include those of all crates.
#[test]
fn pure_crates_are_linted_for_io() {
    let pure = git_files::read(PURE_LINTS);
    for line in git_files::read("clippy.toml").lines() {
        assert!(pure.lines().any(|own| own == line), "{PURE_LINTS} lacks `{line}`");
    }
    for banned in [
        "std::fs::read",
        "std::fs::File",
        "std::net::TcpStream",
        "std::process::Command",
        "std::env::var",
        "std::env::vars",
        "std::env::var_os",
        "std::env::args",
        "std::time::Instant",
        "std::time::SystemTime",
    ] {
        assert!(
            pure.contains(&format!("\"{banned}\"")),
            "{PURE_LINTS} does not ban {banned}"
        );
    }
    for (name, ..) in LAYERS.iter().filter(|(.., forbidden)| *forbidden == IO) {
        let path = format!("crates/{name}/clippy.toml");
        let listed = git_files::files().contains(&path);
        assert!(
            listed && git_files::read(&path) == pure,
            "{path} is not a link to {PURE_LINTS}"
        );
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
