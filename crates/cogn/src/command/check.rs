//! `cogn check`: checks a saved reply against a module without calling a model.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use module::check::check_runnable;
use module::envelope::{CheckOptions, Profile, check_envelope, check_reply};
use module::{Envelope, Module, Severity, limits, stream};
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::human_output::{print_data, print_findings, print_verdict};
use crate::modules::{Search, read_folder};
use crate::output::{Output, hinted};

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The module: a name or a folder.
    module: String,
    /// The file with the reply; `-` or no file reads standard input.
    reply: Option<PathBuf>,
    /// Read the reply as a recorded stream: one chunk per line, or server-sent events.
    #[arg(long)]
    chunks: bool,
    /// The profile of the printed envelope: 2.2, 2.5 or cep-2.2.
    #[arg(long, value_name = "PROFILE", default_value = "2.5", value_parser = profile)]
    envelope: Profile,
}

fn profile(text: &str) -> Result<Profile, String> {
    Profile::find(text).ok_or_else(|| String::from("must be 2.2, 2.5 or cep-2.2"))
}

impl Check {
    pub(crate) fn run(&self, search: &Search, output: &Output) -> Result<Exit> {
        let module = open(&self.module, search, output)?;
        let bytes = self.read_reply()?;
        let (mut envelope, breaches) = if self.chunks {
            check_chunks(&module, &bytes)
        } else {
            let outcome = check_reply(&module, &bytes, &CheckOptions::default());
            (outcome.envelope, Vec::new())
        };
        let kept = envelope.is_ok() && !breaches.iter().any(|breach| breach.severity == Severity::Error);
        if !breaches.is_empty() {
            let list = breaches.iter().map(breach_value).collect();
            envelope
                .annotations
                .insert(String::from("_violations"), Value::Array(list));
        }
        let value = envelope.into_profile(self.envelope);
        if output.json {
            output.json(&value)?;
        } else {
            print_verdict(output, &value)?;
            print_findings(output, &value)?;
            print_data(output, value.get("data").or_else(|| value.get("partial_data")))?;
        }
        Ok(if kept { Exit::Success } else { Exit::Failure })
    }

    /// Reads one byte more than the limit, so that the check of the reply reports the excess.
    fn read_reply(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let max = limits::REPLY_BYTES_MAX as u64 + 1;
        match self.reply.as_deref().filter(|path| path.as_os_str() != "-") {
            Some(path) => {
                let name = || format!("cannot read the reply {}", path.display());
                let file = File::open(path).with_context(name)?;
                file.take(max).read_to_end(&mut bytes).with_context(name)?;
            }
            None => {
                let input = io::stdin().lock().take(max).read_to_end(&mut bytes);
                input.context("cannot read the reply from standard input")?;
            }
        }
        Ok(bytes)
    }
}

/// Loads the module, or prints its diagnostics and fails.
fn open(name: &str, search: &Search, output: &Output) -> Result<Module> {
    let found = search.find(name)?;
    let loaded = check_runnable(&read_folder(&found.path)?);
    match loaded.module {
        Some(module) if !loaded.report.has_errors() => Ok(module),
        _ => {
            for diagnostic in loaded.report.iter() {
                let place = diagnostic.location.as_ref().map_or_else(String::new, |place| {
                    format!(" ({}:{}:{})", place.file, place.line, place.column)
                });
                let severity = diagnostic.severity.as_str();
                let rule = diagnostic.rule.code();
                output.note(format!("{severity}[{rule}]: {}{place}", diagnostic.message));
            }
            let hint = format!("`cogn validate {name}` shows every problem with its position");
            Err(hinted(format!("the module `{name}` does not load"), hint))
        }
    }
}

fn check_chunks(module: &Module, bytes: &[u8]) -> (Envelope, Vec<stream::Violation>) {
    let assembled = stream::assemble_ndjson(bytes);
    (check_envelope(module, assembled.envelope), assembled.violations)
}

fn breach_value(breach: &stream::Violation) -> Value {
    json!({
        "code": breach.code.as_str(),
        "severity": breach.severity.as_str(),
        "line": breach.line,
        "pointer": breach.pointer,
        "message": breach.message,
    })
}
