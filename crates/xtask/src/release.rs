//! cogn as it is released: with the embedded model, compiled as one piece, and its code laid out by how often it runs
//! (decision 178). Where the tools for the last are missing and cannot be installed it is left out, and that is said.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context, Result};

use crate::shell::{build_cogn, capture, cargo, run, target};
use crate::{bench, native_deps};

pub(crate) const PROFILE: &str = "dist";

/// What has the tools, and how their names end there.
const PACKAGES: &[&str] = &["bolt-22", "llvm-22"];
const SUFFIXES: [&str; 2] = ["", "-22"];

/// Hot code stands together, cold parts of it elsewhere. Functions that never ran stay where and as they are, and so do those
/// that were written as machine code by hand.
const LAYOUT: [&str; 6] = [
    "-reorder-functions=cdsort",
    "-reorder-blocks=ext-tsp",
    "-split-functions",
    "-split-all-cold",
    "-split-eh",
    "-skip-funcs=aws_lc.*",
];

/// Builds it and returns where it stands.
pub(crate) fn build() -> Result<PathBuf> {
    match Tools::find() {
        Some(tools) => tools.lay_out(),
        None => build_cogn(PROFILE),
    }
}

struct Tools {
    suffix: &'static str,
}

impl Tools {
    #[expect(
        clippy::print_stderr,
        reason = "a build tool talks to the person who called it"
    )]
    fn find() -> Option<Self> {
        // The work by which it is laid out is done on two cores, as in the bench.
        let cores = thread::available_parallelism().map_or(1, usize::from);
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) || cores < 2 {
            eprintln!(
                "Code is laid out by how often it runs on x86-64 Linux with two cores only: this build is not."
            );
            return None;
        }
        if Self::present().is_none() && native_deps::may_install() {
            let packages = PACKAGES.join(" and ");
            eprintln!("Code is laid out by how often it runs, which takes {packages}: installing them.");
            // A system that has no such packages is told below.
            native_deps::install(PACKAGES).ok();
        }
        let tools = Self::present();
        if tools.is_none() {
            eprintln!(
                "llvm-bolt, merge-fdata or llvm-strip is missing: code is not laid out by how often it runs, and a server takes \
                 about a sixth more processor time and half as much memory again at rest."
            );
        }
        tools
    }

    fn present() -> Option<Self> {
        let mut tools = SUFFIXES.into_iter().map(|suffix| Self { suffix });
        tools.find(|tools| {
            let names = ["llvm-bolt", "merge-fdata", "llvm-strip"];
            names.iter().all(|name| native_deps::starts(&tools.name(name)))
        })
    }

    fn name(&self, tool: &str) -> String {
        format!("{tool}{}", self.suffix)
    }

    fn tool(&self, tool: &str) -> Command {
        Command::new(self.name(tool))
    }

    fn lay_out(&self) -> Result<PathBuf> {
        let built = build_with_relocations()?;
        let folder = target(PROFILE)?.join("layout");
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => fs::create_dir_all(&folder)?,
        }
        let counting = folder.join("cogn-counting");
        let counts = folder.join("counts");
        run(self
            .tool("llvm-bolt")
            .arg(&built)
            .args(["-instrument", "-instrumentation-file-append-pid"])
            .arg(option("-instrumentation-file", &counts))
            .arg("-o")
            .arg(&counting))?;
        bench::train(&counting)?;
        let profile = self.merged(&folder)?;
        let binary = folder.join("cogn");
        run(self
            .tool("llvm-bolt")
            .arg(&built)
            .arg(option("-data", &profile))
            .args(LAYOUT)
            .arg("-o")
            .arg(&binary))?;
        // The usual `strip` breaks what was laid out anew.
        run(self.tool("llvm-strip").arg(&binary))?;
        // Nobody gets a binary that does not do what it did before.
        run(Command::new(&binary).arg("conformance"))?;
        Ok(binary)
    }

    /// What all processes have counted.
    fn merged(&self, folder: &Path) -> Result<PathBuf> {
        let files = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
        let files: Vec<_> = files.collect::<Result<_, _>>()?;
        let counts = files
            .iter()
            .filter(|path| path.extension().is_some_and(|end| end == "fdata"));
        let merged = capture(self.tool("merge-fdata").args(counts)).context("nothing was counted")?;
        let profile = folder.join("profile");
        fs::write(&profile, merged)?;
        Ok(profile)
    }
}

/// With all that is needed to move its parts about.
fn build_with_relocations() -> Result<PathBuf> {
    native_deps::ensure()?;
    run(cargo([
        "rustc",
        "--locked",
        "-p",
        "cogn",
        "--bin",
        "cogn",
        "--profile",
        PROFILE,
    ])
    .args(["--features", native_deps::FEATURE])
    .args(["--config", "profile.dist.strip=\"none\""])
    .args(["--", "-C", "link-arg=-Wl,--emit-relocs"]))?;
    Ok(target(PROFILE)?.join("cogn"))
}

fn option(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}
