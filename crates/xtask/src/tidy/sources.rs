//! Where dependencies come from, and which ones are not used: a second implementation of what another crate does
//! here already, or one that no longer has a maintainer.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::git_files;
use crate::shell::{capture, cargo};

/// The registry of cargo, as it is named in `Cargo.lock`.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Crates that no dependency may use either, and what is used instead.
const BANNED: &[(&str, &str)] = &[
    ("openssl", "rustls"),
    ("openssl-sys", "rustls"),
    ("native-tls", "rustls"),
    ("atty", "std::io::IsTerminal"),
    ("ansi_term", "owo-colors"),
    ("failure", "thiserror and anyhow"),
    ("serde_yaml", "serde-saphyr"),
    ("structopt", "clap"),
    ("sqlx-sqlite", "rusqlite"),
    ("async-std", "tokio"),
    ("git2", "the program git"),
];

/// Crates that the crates of this workspace may not use directly.
const BANNED_HERE: &[(&str, &str)] = &[
    ("chrono", "the port Clock"),
    ("lazy_static", "std::sync::LazyLock"),
    ("once_cell", "std::sync::OnceLock"),
    ("log", "tracing"),
    ("rand", "getrandom"),
];

fn packages() -> Vec<Value> {
    let text =
        capture(&mut cargo(["metadata", "--format-version", "1", "--locked"])).expect("cargo metadata runs");
    let metadata: Value = serde_json::from_str(&text).expect("cargo metadata is JSON");
    metadata["packages"]
        .as_array()
        .expect("packages are listed")
        .clone()
}

/// Problems of a package: an unknown source, a banned crate, or one of this workspace that uses a banned crate.
fn problems(package: &Value) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let source = package["source"].as_str();
    let mut found = Vec::new();
    if source.is_some_and(|source| source != REGISTRY) {
        found.push(format!("{name} comes from {}", source.unwrap_or_default()));
    }
    if let Some((_, instead)) = BANNED.iter().find(|(banned, _)| *banned == name) {
        found.push(format!("{name} is banned; use {instead}"));
    }
    if source.is_none() {
        let used = package["dependencies"].as_array().into_iter().flatten();
        for used in used.filter_map(|used| used["name"].as_str()) {
            if let Some((_, instead)) = BANNED_HERE.iter().find(|(banned, _)| *banned == used) {
                found.push(format!("{name} uses {used}; use {instead}"));
            }
        }
    }
    found
}

#[test]
fn dependencies_come_from_the_registry_and_none_is_banned() {
    let packages = packages();
    assert!(packages.len() > 100);
    let found: BTreeSet<String> = packages.iter().flat_map(problems).collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn every_package_from_the_registry_has_a_checksum() {
    let lock = git_files::read("Cargo.lock");
    let packages = lock.split("[[package]]").skip(1);
    let mut counted = 0;
    for package in packages.filter(|package| package.contains("\nsource = ")) {
        counted += 1;
        assert!(package.contains("\nchecksum = \""), "no checksum in {package}");
    }
    assert!(counted > 100, "{counted}");
}

#[test]
fn other_sources_and_banned_crates_are_found() {
    let of = |name: &str, source: &str| problems(&serde_json::json!({"name": name, "source": source}));
    assert_eq!(of("serde", REGISTRY), Vec::<String>::new());
    assert_eq!(of("serde", "git+https://example.com/serde").len(), 1);
    assert_eq!(of("openssl", REGISTRY), ["openssl is banned; use rustls"]);
    let own = |used: &str| {
        problems(&serde_json::json!({"name": "ir", "source": null, "dependencies": [{"name": used}]}))
    };
    assert_eq!(own("serde"), Vec::<String>::new());
    assert_eq!(own("log"), ["ir uses log; use tracing"]);
}
