//! Library benchmarks: a bench target prints rows as JSON lines, which are read here.

use anyhow::{Context, Result};
use serde_json::Value;

use super::row::Row;
use crate::shell::{capture, cargo};

/// Crates with a bench target named `ratio`, and the features it requires.
const CRATES: [(&str, &[&str]); 4] = [
    ("module", &[]),
    ("wire", &[]),
    ("engine", &[]),
    ("local", &["--features", "llama"]),
];

pub(crate) fn measure() -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, features) in CRATES {
        let mut bench = cargo(["bench", "--locked", "-p", name]);
        let text = capture(bench.args(features).args(["--bench", "ratio"]))?;
        for line in text.lines().filter(|line| line.starts_with('{')) {
            rows.push(row(line)?);
        }
    }
    Ok(rows)
}

fn row(line: &str) -> Result<Row> {
    let value: Value = serde_json::from_str(line)?;
    let number = |key: &str| {
        value[key]
            .as_f64()
            .with_context(|| format!("no `{key}` in {line}"))
    };
    let text = |key: &str| String::from(value[key].as_str().unwrap_or_default());
    Ok(Row {
        name: text("name"),
        measured: number("measured_us")?,
        baseline: number("baseline_us")?,
        unit: "us",
        against: text("against"),
        limit: number("limit")?,
    })
}
