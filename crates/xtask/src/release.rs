//! The release build: with the embedded model for every machine with the portable instruction set, link-time
//! optimised, and on request with profile-guided code layout (decision 58).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, bail};

use crate::shell::{build_portable_cogn, capture, cargo, run, target};
use crate::{bench, native_deps};

pub(crate) const PROFILE: &str = "dist";

/// Packages of the tools, and the suffixes of their program names.
const PACKAGES: &[&str] = &["bolt-22", "llvm-22"];
const SUFFIXES: [&str; 2] = ["", "-22"];

/// Hot code is placed together, its cold parts elsewhere. Functions that never ran are not moved, and neither
/// is hand-written assembly.
const LAYOUT: [&str; 6] = [
    "-reorder-functions=cdsort",
    "-reorder-blocks=ext-tsp",
    "-split-functions",
    "-split-all-cold",
    "-split-eh",
    "-skip-funcs=aws_lc.*",
];

/// Builds the binary and returns its path.
pub(crate) fn build(bolt: bool) -> Result<PathBuf> {
    if bolt {
        Tools::find()?.lay_out()
    } else {
        build_portable_cogn(PROFILE)
    }
}

struct Tools {
    suffix: &'static str,
}

impl Tools {
    fn find() -> Result<Self> {
        // The workload needs two cores, as the benchmarks do.
        let cores = thread::available_parallelism().map_or(1, usize::from);
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) || cores < 2 {
            bail!("profile-guided code layout requires x86-64 Linux and two cores");
        }
        if Self::present().is_none() && native_deps::may_install() {
            native_deps::install(PACKAGES)?;
        }
        Self::present()
            .context("llvm-bolt, merge-fdata or llvm-strip is missing (packages bolt-22 and llvm-22)")
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
        // The ordinary `strip` breaks the new layout.
        run(self.tool("llvm-strip").arg(&binary))?;
        // The result must pass the conformance vectors.
        run(Command::new(&binary).arg("conformance"))?;
        Ok(binary)
    }

    /// The merged profile of all processes.
    fn merged(&self, folder: &Path) -> Result<PathBuf> {
        let files = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
        let files: Vec<_> = files.collect::<Result<_, _>>()?;
        let counts = files
            .iter()
            .filter(|path| path.extension().is_some_and(|end| end == "fdata"));
        let merged = capture(self.tool("merge-fdata").args(counts)).context("no profile was recorded")?;
        let profile = folder.join("profile");
        fs::write(&profile, merged)?;
        Ok(profile)
    }
}

/// With the relocations that `llvm-bolt` requires.
fn build_with_relocations() -> Result<PathBuf> {
    native_deps::ensure()?;
    let mut command = cargo([
        "rustc",
        "--locked",
        "-p",
        "cogn",
        "--bin",
        "cogn",
        "--profile",
        PROFILE,
    ]);
    command
        .args(["--features", native_deps::FEATURE])
        .args(["--config", "profile.dist.strip=\"none\""])
        .args(["--", "-C", "link-arg=-Wl,--emit-relocs"]);
    run(native_deps::portable(&mut command))?;
    Ok(target(PROFILE)?.join("cogn"))
}

fn option(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}
