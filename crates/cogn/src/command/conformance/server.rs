//! `cogn conformance --url`: checks of a running server.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use module::conformance::server::{CheckRow, ServerOutcome, ServerReport};
use owo_colors::OwoColorize;
use secrecy::SecretString;
use serde_json::Value;

use super::Conformance;
use crate::config::secret_of_environment;
use crate::conformance::{Client, RequestedModule, examine, limits};
use crate::exit::Exit;
use crate::output::{Output, hinted};
use crate::wiring::current_thread_runtime;

impl Conformance {
    pub(super) fn run_server(&self, url: &str, output: &Output) -> Result<Exit> {
        let patience = Duration::from_millis(self.timeout.as_millis());
        let client = Client::new(url, self.key()?, patience)?;
        let named = self.named()?;
        let report = current_thread_runtime()?.block_on(examine(&client, &named, self.level))?;
        if output.json {
            output.json(&report)?;
        } else {
            show(&report, output);
        }
        Ok(if report.proven {
            Exit::Success
        } else {
            Exit::Failure
        })
    }

    fn key(&self) -> Result<Option<SecretString>> {
        let Some(name) = &self.key_env else {
            return Ok(None);
        };
        let key =
            secret_of_environment(name).map_err(|why| hinted(why, format!("export {name}=cogn_...")))?;
        Ok(Some(key))
    }

    fn named(&self) -> Result<Vec<RequestedModule>> {
        if self.input.len() > self.module.len() {
            bail!("{} inputs for {} modules", self.input.len(), self.module.len());
        }
        let mut inputs = self.input.iter();
        let named = self.module.iter().map(|name| {
            Ok(RequestedModule {
                name: name.clone(),
                input: inputs.next().map(|path| read(path)).transpose()?,
            })
        });
        named.collect()
    }
}

fn read(path: &Path) -> Result<Value> {
    let shown = path.display();
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(|| format!("cannot open {shown}"))?;
    file.take(limits::INPUT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {shown}"))?;
    if bytes.len() as u64 > limits::INPUT_BYTES_MAX {
        bail!("{shown} is larger than {} bytes", limits::INPUT_BYTES_MAX);
    }
    serde_json::from_slice(&bytes).with_context(|| format!("{shown} is not JSON"))
}

fn show(report: &ServerReport, output: &Output) {
    let mut text = String::new();
    for row in &report.checks {
        let CheckRow { name, rule, .. } = row;
        let reason = row.reason.as_deref().unwrap_or_default();
        match row.outcome {
            ServerOutcome::Passed if output.quiet => {}
            ServerOutcome::Passed => text.push_str(&format!("{} {name}\n", "passed".green())),
            ServerOutcome::Skipped => text.push_str(&format!("{} {name}: {reason}\n", "skipped".yellow())),
            ServerOutcome::Failed => {
                let mark = match row.requires {
                    "must" => "FAILED".red().bold().to_string(),
                    _ => "failed".yellow().to_string(),
                };
                text.push_str(&format!(
                    "{mark} {name}: {reason}\n  {} {}: {rule}\n",
                    "it", row.requires
                ));
            }
        }
    }
    let ServerReport {
        passed,
        failed,
        skipped,
        level,
        ..
    } = report;
    text.push_str(&format!("{passed} passed, {failed} failed, {skipped} skipped\n"));
    text.push_str(&match report.proven {
        true => format!("{} conforms at level {}\n", report.url, level.bold()),
        false => format!("level {level} is not proven for {}\n", report.url),
    });
    // A closed pipe is not a failure.
    output.stdout().write_all(text.as_bytes()).ok();
}
