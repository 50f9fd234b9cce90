//! `cargo x check`: what a machine can see without running the product.

use anyhow::Result;

use crate::shell::{self, cargo};

pub(crate) fn run() -> Result<()> {
    shell::run(&mut cargo(["fmt", "--all", "--check"]))?;
    shell::run(&mut cargo([
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ]))?;
    let mut doc = cargo([
        "doc",
        "--workspace",
        "--no-deps",
        "--locked",
        "--document-private-items",
    ]);
    shell::run(doc.env("RUSTDOCFLAGS", "-D warnings"))?;
    shell::run(&mut cargo(["test", "-p", "xtask", "--locked"]))
}
