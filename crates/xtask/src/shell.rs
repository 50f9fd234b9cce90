//! Runs other programs: prints the command first, and fails if it fails.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::native_deps;

/// The repository's root, two folders above this crate.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A cargo command in the root, with the cargo that runs this program.
pub(crate) fn cargo<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(arguments: I) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(root()).args(arguments);
    command
}

/// Prints the command, runs it, and fails if it fails.
#[expect(clippy::print_stderr, reason = "a build tool prints for its user")]
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let arguments: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
    let line = format!("{program} {}", arguments.join(" "));
    eprintln!("\x1b[1m$ {line}\x1b[0m");
    let status = command.status().with_context(|| format!("cannot start {line}"))?;
    if !status.success() {
        bail!("failed: {line}");
    }
    Ok(())
}

/// The output of the program, or why it failed.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot start {:?}", command.get_program()))?;
    if !output.status.success() {
        bail!(
            "{:?} failed: {}",
            command.get_program(),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Builds cogn with the embedded model, for the processor of this machine, and returns its path.
pub(crate) fn build_cogn(profile: &str) -> Result<PathBuf> {
    native_deps::ensure()?;
    build("cogn", &["--features", native_deps::FEATURE], profile)
}

/// As [`build_cogn`], but for other machines too.
pub(crate) fn build_portable_cogn(profile: &str) -> Result<PathBuf> {
    native_deps::ensure()?;
    let arguments = ["build", "--locked", "-p", "cogn", "--profile", profile];
    let mut command = cargo(arguments);
    command.args(["--features", native_deps::FEATURE]);
    run(native_deps::portable(&mut command))?;
    Ok(target(profile)?.join("cogn"))
}

/// Builds a binary and returns its path.
pub(crate) fn build(package: &str, features: &[&str], profile: &str) -> Result<PathBuf> {
    run(cargo(["build", "--locked", "-p", package, "--profile", profile]).args(features))?;
    Ok(target(profile)?.join(package))
}

/// The output folder of cargo for this profile.
pub(crate) fn target(profile: &str) -> Result<PathBuf> {
    let metadata = capture(&mut cargo([
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
        "--locked",
    ]))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    let target = metadata["target_directory"]
        .as_str()
        .context("cargo metadata has no target folder")?;
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(Path::new(target).join(folder))
}
