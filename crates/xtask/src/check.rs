//! `cargo x check`: static checks.

use anyhow::Result;

use crate::native_deps;
use crate::shell::{self, cargo};

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
    // Without a C++ toolchain the project is built without the embedded model.
    shell::run(&mut cargo(["check", "-p", "cogn", "-p", "local", "--locked"]))?;
    shell::run(&mut cargo(["test", "-p", "xtask", "--locked"]))
}
