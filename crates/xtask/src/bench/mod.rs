//! `cargo x bench`: speed as ratios against a baseline measured in the same run, so that a busy machine
//! slows both. Each row has a limit; a row over its limit fails the command. Nothing here is a test: CI does
//! not run it, people do, and `docs/benchmarks.md` keeps what they saw.

mod gateway;
mod disconnect;
mod library;
mod modules;
mod process;
mod row;
mod setup;
mod bolt_workload;

use std::path::PathBuf;
use std::process::Command;
use std::thread;

use anyhow::{Result, bail};
use clap::Args;

use crate::release;
use crate::shell::capture;

pub(crate) use bolt_workload::train;

#[derive(Args)]
pub(crate) struct Bench {
    /// Measure only rows whose name contains this.
    filter: Option<String>,
    /// Measure this cogn instead of building one: two of them in turn tell what a change is worth.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
}

impl Bench {
    pub(crate) fn run(&self) -> Result<()> {
        let binary = match &self.binary {
            Some(binary) => binary.canonicalize()?,
            None => release::build()?,
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
            missed => bail!("{missed} of {} figures miss their limit", rows.len()),
        }
    }
}

/// What a reader needs to know to compare: cores, kernel, day, and the baseline's version.
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
