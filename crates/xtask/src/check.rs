//! `cargo x check`: static checks.

use anyhow::{Context, Result};

use crate::native_deps;
use crate::shell::{self, cargo};

/// Every feature of every crate of the workspace.
fn features() -> Result<Vec<(String, String)>> {
    let metadata = shell::capture(&mut cargo([
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
        "--locked",
    ]))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    let mut features = Vec::new();
    for package in metadata["packages"]
        .as_array()
        .context("cargo metadata has no packages")?
    {
        let name = package["name"].as_str().unwrap_or_default();
        let own = package["features"].as_object().into_iter().flatten();
        features.extend(own.map(|(feature, _)| (String::from(name), feature.clone())));
    }
    anyhow::ensure!(!features.is_empty(), "no crate has a feature");
    Ok(features)
}

pub(crate) fn run() -> Result<()> {
    shell::run(&mut cargo(["fmt", "--all", "--check"]))?;
    native_deps::ensure()?;
    shell::run(&mut cargo([
        "clippy",
        "--workspace",
        "--all-targets",
        "--features",
        native_deps::FEATURE,
        "--locked",
        "--",
        "-D",
        "warnings",
    ]))?;
    let mut doc = cargo([
        "doc",
        "--workspace",
        "--no-deps",
        "--features",
        native_deps::FEATURE,
        "--locked",
        "--document-private-items",
    ]);
    shell::run(doc.env("RUSTDOCFLAGS", "-D warnings"))?;
    for (package, feature) in features()? {
        shell::run(&mut cargo([
            "check",
            "--locked",
            "-p",
            &package,
            "--no-default-features",
            "--features",
            &feature,
        ]))?;
    }
    shell::run(&mut cargo(["test", "-p", "xtask", "--locked"]))
}
