//! `cargo x audit`: known vulnerabilities of dependencies. It requires a database on the network that changes
//! every day, so it is not part of the checks that gate a change.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::shell::{cargo, root, run};

/// The program that reads the database.
const TOOL: &str = "cargo-audit";
const VERSION: &str = "0.22.2";

pub(crate) fn audit() -> Result<()> {
    let mut audit = std::process::Command::new(tool()?);
    audit.current_dir(root());
    // Unmaintained and yanked crates are warnings.
    run(audit.args(["audit", "--file", "Cargo.lock"])).context(
        "vulnerable dependencies are listed above; if the database cannot be reached, try again later",
    )
}

/// The installed program, in a folder of its version.
#[expect(clippy::print_stderr, reason = "a build tool prints for its user")]
fn tool() -> Result<PathBuf> {
    let folder = root().join("target").join(format!("{TOOL}-{VERSION}"));
    let program = folder.join("bin").join(TOOL);
    if !program.is_file() {
        eprintln!("Checking advisories requires {TOOL} {VERSION}: installing it in target.");
        let mut install = cargo(["install", TOOL, "--version", VERSION, "--locked", "--root"]);
        run(install.arg(&folder))?;
    }
    Ok(program)
}
