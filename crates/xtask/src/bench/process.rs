//! Whole processes: time of a command from start to exit, compared with the start of another runtime.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::row::Row;
use crate::shell::root;

const ROUNDS: usize = 40;

pub(crate) fn start(binary: &Path) -> Result<Vec<Row>> {
    let node = || node_start();
    let version = || version(binary);
    let validate = || validate(binary);
    let run = || scripted(binary);
    let (version_ms, node_ms) = side_by_side(ROUNDS, &version, &node)?;
    let (validate_ms, node_again_ms) = side_by_side(ROUNDS, &validate, &node)?;
    let (run_ms, node_last_ms) = side_by_side(ROUNDS, &run, &node)?;
    Ok(vec![
        row("`cogn --version`", version_ms, node_ms, 0.2),
        row("`cogn validate` of one module", validate_ms, node_again_ms, 0.2),
        row(
            "`cogn run` on a scripted back-end",
            run_ms,
            node_last_ms,
            1.0 / 6.0,
        ),
    ])
}

/// Frequently used commands.
pub(crate) fn commands(binary: &Path) -> [Command; 3] {
    [version(binary), validate(binary), scripted(binary)]
}

fn version(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    command.arg("--version");
    command
}

fn validate(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    command
        .current_dir(root())
        .args(["validate", "examples/modules/code-simplifier"]);
    command
}

fn scripted(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    command.current_dir(root()).args([
        "run",
        "examples/modules/sql-explainer",
        "examples/modules/sql-explainer/tests/top-customers.input.json",
        "--replay",
        "examples/modules/sql-explainer/tests/recordings/top-customers.yaml",
    ]);
    command
}

fn row(name: &str, measured: f64, baseline: f64, limit: f64) -> Row {
    Row {
        name: String::from(name),
        measured,
        baseline,
        unit: "ms",
        against: String::from("`node -e 0`"),
        limit,
    }
}

/// The baseline of every start-up figure.
pub(crate) fn node_start() -> Command {
    let mut command = Command::new("node");
    command.args(["-e", "0"]);
    command
}

/// Median times in milliseconds of two commands, run in turn under the same conditions.
pub(crate) fn side_by_side(
    rounds: usize,
    measured: &dyn Fn() -> Command,
    baseline: &dyn Fn() -> Command,
) -> Result<(f64, f64)> {
    let mut ours = Vec::with_capacity(rounds);
    let mut theirs = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        ours.push(time_ms(&mut measured())?);
        theirs.push(time_ms(&mut baseline())?);
    }
    Ok((median(&mut ours), median(&mut theirs)))
}

pub(crate) fn time_ms(command: &mut Command) -> Result<f64> {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .stdin(Stdio::null());
    let started = Instant::now();
    let status = command
        .status()
        .with_context(|| format!("cannot start {:?}", command.get_program()))?;
    let elapsed = started.elapsed();
    if !status.success() {
        bail!("failed while being measured: {command:?}");
    }
    Ok(elapsed.as_secs_f64() * 1000.0)
}

pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
