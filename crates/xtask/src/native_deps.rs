//! Build dependencies of the embedded model: cmake, a C++ compiler, clang and libclang. Missing ones are
//! installed, after announcing it, if permitted; otherwise the error lists the packages.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::shell::run;

/// The feature that enables the embedded model, for commands on the whole workspace.
pub(crate) const FEATURE: &str = "cogn/local";

const PACKAGES: &[&str] = &["cmake", "make", "g++", "clang", "libclang-dev"];

/// Compiles the embedded model for every machine with the portable instruction set, instead of for this one. The
/// variable is read by `crates/local/cmake/instruction_set.cmake`.
pub(crate) fn portable(command: &mut Command) -> &mut Command {
    command.env("GGML_NATIVE", "OFF")
}

/// Returns when all dependencies are installed.
#[expect(clippy::print_stderr, reason = "a build tool prints for its user")]
pub(crate) fn ensure() -> Result<()> {
    let missing = missing();
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(", ");
    if !may_install() {
        bail!(
            "building the embedded model requires {list}; install {} (or the equivalent packages) and run this again",
            PACKAGES.join(" ")
        );
    }
    eprintln!("Building the embedded model (C++) requires {list}: installing them.");
    install(PACKAGES)
}

/// Whether missing packages may be installed on this machine.
pub(crate) fn may_install() -> bool {
    starts("apt-get") && is_root()
}

pub(crate) fn install(packages: &[&str]) -> Result<()> {
    run(Command::new("apt-get").args(["update", "-qq"]))?;
    run(Command::new("apt-get")
        .args(["install", "-y", "-qq", "--no-install-recommends"])
        .args(packages)
        .env("DEBIAN_FRONTEND", "noninteractive"))
}

fn missing() -> Vec<&'static str> {
    let mut missing = Vec::new();
    for program in ["cmake", "make", "clang"] {
        if !starts(program) {
            missing.push(program);
        }
    }
    if !starts("c++") {
        missing.push("a C++ compiler");
    }
    if !has_libclang() {
        missing.push("libclang");
    }
    missing
}

/// Whether the program exists.
pub(crate) fn starts(program: &str) -> bool {
    let mut command = Command::new(program);
    command
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The search paths of bindgen.
fn has_libclang() -> bool {
    if std::env::var_os("LIBCLANG_PATH").is_some() || cfg!(target_os = "macos") {
        return true;
    }
    let mut folders: Vec<_> = ["/usr/lib", "/usr/lib64", "/usr/local/lib"]
        .into_iter()
        .map(|folder| Path::new(folder).to_path_buf())
        .collect();
    let inside: Vec<_> = folders.iter().flat_map(|folder| entries(folder)).collect();
    for folder in inside.into_iter().filter(|path| path.is_dir()) {
        folders.push(folder.join("lib"));
        folders.push(folder);
    }
    let is_libclang = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libclang.so") || (name.starts_with("libclang-") && name.contains(".so"))
    };
    folders
        .iter()
        .any(|folder| entries(folder).iter().any(is_libclang))
}

fn entries(folder: &Path) -> Vec<std::path::PathBuf> {
    let read = std::fs::read_dir(folder).into_iter().flatten();
    read.flatten().map(|entry| entry.path()).collect()
}

fn is_root() -> bool {
    let asked = Command::new("id").arg("-u").output();
    asked.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
