//! `cogn gate`: checks saved envelopes against the gate rules of runs. Envelopes that pass are printed; the
//! others are listed for review.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use engine::gate::{GateRule, Gates};
use module::envelope::Risk;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::output::{Output, hinted};
use crate::{atomic_file, gates};

/// Size limit of a file.
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

#[derive(Debug, Args)]
pub(crate) struct Gate {
    /// Files with envelopes: one envelope, a list, or one per line; `-` or no file reads standard input.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The minimum confidence to pass; overrides the configured one.
    #[arg(long, value_name = "NUMBER")]
    min_confidence: Option<f64>,
    /// The maximum risk to pass; overrides the configured one.
    #[arg(long, value_enum, value_name = "RISK")]
    max_risk: Option<RiskLevel>,
    /// Use the rule that is configured for this module.
    #[arg(long, value_name = "NAME")]
    module: Option<String>,
    /// Write the envelopes that do not pass to this file, one per line, with the reasons.
    #[arg(long, value_name = "FILE")]
    review: Option<PathBuf>,
    /// Use this file instead of the project's cogn.toml.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RiskLevel {
    None,
    Low,
    Medium,
    High,
}

impl RiskLevel {
    fn risk(self) -> Risk {
        match self {
            Self::None => Risk::None,
            Self::Low => Risk::Low,
            Self::Medium => Risk::Medium,
            Self::High => Risk::High,
        }
    }
}

/// One envelope and its source.
struct Saved {
    source: String,
    line: Option<usize>,
    /// The record as read; in the output of a batch the envelope is a field of it.
    record: Value,
}

impl Saved {
    fn envelope(&self) -> &Value {
        match self.record.get("envelope") {
            Some(envelope) if self.record.get("ok").is_none() => envelope,
            _ => &self.record,
        }
    }
}

impl Gate {
    pub(crate) fn run(&self, output: &Output) -> Result<Exit> {
        let rule = self.rule()?;
        let mut passed = Vec::new();
        let mut held = Vec::new();
        for saved in self.read()? {
            let reasons: Vec<String> = rule
                .failures(saved.envelope())
                .iter()
                .map(ToString::to_string)
                .collect();
            match reasons.is_empty() {
                true => passed.push(saved),
                false => held.push((saved, reasons)),
            }
        }
        if let Some(path) = &self.review {
            let lines = held.iter().map(|(saved, reasons)| {
                let line = json!({"source": saved.source, "line": saved.line, "reasons": reasons, "record": saved.record});
                format!("{line}\n")
            });
            atomic_file::write(path, lines.collect::<String>().as_bytes())?;
        }
        if output.json {
            let items = held.iter().map(
                |(saved, reasons)| json!({"source": saved.source, "line": saved.line, "reasons": reasons}),
            );
            output.json(&json!({
                "passed": passed.len(),
                "needs_review": held.len(),
                "items": items.collect::<Vec<_>>(),
            }))?;
        } else {
            for saved in &passed {
                output.line(saved.record.to_string())?;
            }
            for (saved, reasons) in &held {
                let place = saved.line.map_or_else(String::new, |line| format!(":{line}"));
                output.note(format!("{}{place}: {}", saved.source, reasons.join("; ")));
            }
            output.note(format!("{} passed, {} need review", passed.len(), held.len()));
        }
        Ok(if held.is_empty() {
            Exit::Success
        } else {
            Exit::Failure
        })
    }

    fn rule(&self) -> Result<GateRule> {
        if let Some(confidence) = self.min_confidence.filter(|given| !(0.0..=1.0).contains(given)) {
            return Err(hinted(
                format!("{confidence} is not a valid confidence"),
                "write a number from 0 to 1",
            ));
        }
        let from_flags = self.min_confidence.is_some() || self.max_risk.is_some();
        let gates = match from_flags && self.module.is_none() && self.config.is_none() {
            true => Gates::default(),
            false => gates::configured(&[], self.config.as_deref())?,
        };
        let mut rule = gates
            .for_module(self.module.as_deref().unwrap_or_default())
            .cloned()
            .unwrap_or_default();
        rule.min_confidence = self.min_confidence.or(rule.min_confidence);
        rule.max_risk = self.max_risk.map(RiskLevel::risk).or(rule.max_risk);
        if rule.min_confidence.is_none() && rule.max_risk.is_none() {
            let hint = "add [gate] to cogn.toml, or use --min-confidence and --max-risk";
            return Err(hinted("no gate rule is configured", hint));
        }
        Ok(rule)
    }

    fn read(&self) -> Result<Vec<Saved>> {
        let stdin = [PathBuf::from("-")];
        let files = if self.files.is_empty() {
            &stdin[..]
        } else {
            &self.files[..]
        };
        let mut all = Vec::new();
        for path in files {
            let text = read_text(path)?;
            let shown = path.display().to_string();
            let saved = |line: Option<usize>, record: Value| Saved {
                source: shown.clone(),
                line,
                record,
            };
            match serde_json::from_str(&text) {
                Ok(Value::Array(list)) => {
                    all.extend((1..).zip(list).map(|(line, record)| saved(Some(line), record)));
                }
                Ok(record) => all.push(saved(None, record)),
                // Not one document, so one per line.
                Err(_) => {
                    for (line, text) in (1..)
                        .zip(text.lines())
                        .filter(|(_, text)| !text.trim().is_empty())
                    {
                        let record = serde_json::from_str(text)
                            .with_context(|| format!("{shown}:{line} is not JSON"))?;
                        all.push(saved(Some(line), record));
                    }
                }
            }
        }
        Ok(all)
    }
}

fn read_text(path: &Path) -> Result<String> {
    let shown = path.display();
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == "-" {
        io::stdin()
            .lock()
            .take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
    };
    let length = read.with_context(|| format!("cannot read {shown}"))?;
    if length as u64 > FILE_BYTES_MAX {
        anyhow::bail!("{shown} exceeds {FILE_BYTES_MAX} bytes");
    }
    String::from_utf8(bytes).with_context(|| format!("{shown} is not UTF-8"))
}
