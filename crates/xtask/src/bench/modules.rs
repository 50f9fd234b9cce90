//! Many modules: time and memory of `cogn validate --all` as their number grows.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::process::{node_start, side_by_side};
use super::row::Row;
use crate::shell::root;

/// The module that is copied; a real one, with a schema, a prompt and a test.
const MODEL: &str = "examples/modules/code-simplifier";

pub(crate) fn measure(binary: &Path) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let thousand = folder.path().join("thousand");
    let ten_thousand = folder.path().join("ten-thousand");
    multiply(&thousand, 1_000)?;
    multiply(&ten_thousand, 10_000)?;
    let all = |modules: &Path| {
        let mut command = Command::new(binary);
        command
            .current_dir(folder.path())
            .arg("--modules")
            .arg(modules)
            .args(["validate", "--all", "--json"]);
        command
    };
    let (all_ms, node_ms) = side_by_side(5, &|| all(&thousand), &node_start)?;
    let small = resident_kb(&all(&thousand))?;
    let large = resident_kb(&all(&ten_thousand))?;
    Ok(vec![
        Row {
            name: String::from("`cogn validate --all`, 1,000 modules"),
            measured: all_ms,
            baseline: node_ms,
            unit: "ms",
            against: String::from("`node -e 0`"),
            limit: 25.0,
        },
        Row {
            name: String::from("peak memory at 10,000 modules"),
            measured: large / 1024.0,
            baseline: small / 1024.0,
            unit: "MiB",
            against: String::from("1,000 modules"),
            limit: 1.2,
        },
    ])
}

fn multiply(target: &Path, count: usize) -> Result<()> {
    for number in 0..count {
        let name = format!("module-{number}");
        let copy = target.join(&name);
        copy_folder(&root().join(MODEL), &copy)?;
        let manifest = fs::read_to_string(copy.join("module.yaml"))?;
        fs::write(
            copy.join("module.yaml"),
            manifest.replace("name: code-simplifier", &format!("name: {name}")),
        )?;
    }
    Ok(())
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Peak resident memory of the child in KiB, from the kernel.
fn resident_kb(command: &Command) -> Result<f64> {
    let mut timed = Command::new("/usr/bin/time");
    timed
        .args(["-f", "%M"])
        .arg(command.get_program())
        .args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        timed.current_dir(folder);
    }
    let output = timed
        .output()
        .context("cannot start /usr/bin/time (Debian package `time`)")?;
    if !output.status.success() {
        bail!(
            "the measured command failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines()
        .last()
        .and_then(|line| line.trim().parse().ok())
        .context("no figure from /usr/bin/time")
}
