//! `cargo x bench`: speed as ratios to a baseline measured in the same run, so that a busy machine slows
//! both. Each row has a limit; a row over its limit fails the command. Benchmarks are not run by CI, but by
//! hand; `docs/benchmarks.md` records results.

mod bolt_workload;
mod disconnect;
mod gateway;
mod library;
mod modules;
mod process;
mod row;
mod setup;

use std::path::PathBuf;
use std::process::Command;
use std::thread;

use anyhow::{Result, bail};
use clap::Args;

use crate::shell::{build_cogn, capture};

pub(crate) use bolt_workload::train;

#[derive(Args)]
pub(crate) struct Bench {
    /// Measure only rows whose name contains this.
    filter: Option<String>,
    /// Measure this binary instead of building one, for example to compare two versions.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
}

impl Bench {
    pub(crate) fn run(&self) -> Result<()> {
        let binary = match &self.binary {
            Some(binary) => binary.canonicalize()?,
            None => build_cogn("release")?,
        };
        let wanted = |name: &str| self.filter.as_deref().is_none_or(|filter| name.contains(filter));
        let mut rows = Vec::new();
        if wanted("start") {
            rows.extend(process::start(&binary)?);
        }
        if wanted("modules") {
            rows.extend(modules::measure(&binary)?);
        }
        if wanted("library") {
            rows.extend(library::measure()?);
        }
        if wanted("gateway") {
            rows.extend(gateway::modules(&binary)?);
        }
        if wanted("edges") {
            rows.extend(gateway::edges(&binary)?);
        }
        if wanted("leaving") {
            rows.extend(disconnect::measure(&binary)?);
        }
        row::print(&machine()?, &rows);
        match rows.iter().filter(|row| !row.holds()).count() {
            0 => Ok(()),
            missed => bail!("{missed} of {} figures exceed their limit", rows.len()),
        }
    }
}

/// Data for comparison: cores, kernel, date, and the version of the baseline.
fn machine() -> Result<String> {
    let cores = thread::available_parallelism()?;
    let kernel = capture(Command::new("uname").args(["-srm"]))?;
    let day = capture(Command::new("date").args(["-u", "+%F"]))?;
    let node = capture(Command::new("node").arg("--version"))?;
    Ok(format!(
        "{cores} cores, {}, {}, node {}",
        kernel.trim(),
        day.trim(),
        node.trim()
    ))
}
