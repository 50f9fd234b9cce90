//! `cogn explain`: the meaning of a code and how to fix its cause.

use std::io::Write;

use anyhow::Result;
use clap::Args;
use module::Code;
use module::code::{Recoverable, is_module_specific};
use module::diagnostic::{Rule, similar};
use owo_colors::OwoColorize;
use serde::Serialize;

use crate::exit::Exit;
use crate::output::{Output, hinted};
use crate::{error_pages, markdown};

/// How many similar codes a hint names.
const SUGGESTIONS_MAX: usize = 3;

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// An error, warning or diagnostic code, by number or name: E1000, PARSE_ERROR, M3005, remote-reference.
    /// Default: list all codes.
    code: Option<String>,
}

/// One code of any registry, as printed by `--json`.
#[derive(Debug, Serialize)]
struct ExplainedCode {
    code: &'static str,
    name: &'static str,
    kind: &'static str,
    summary: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recoverable: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<&'static str>,
    severity: &'static str,
    /// The page in Markdown; omitted in the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<&'static str>,
}

impl Explain {
    pub(crate) fn run(&self, output: &Output) -> Result<Exit> {
        match &self.code {
            None => list(output)?,
            Some(text) => {
                let entry = find(text).ok_or_else(|| unknown(text))?;
                show(&entry, output)?;
            }
        }
        Ok(Exit::Success)
    }
}

fn list(output: &Output) -> Result<()> {
    if output.json {
        let bare = entries().map(|entry| ExplainedCode { page: None, ..entry });
        return Ok(output.json(&bare.collect::<Vec<_>>())?);
    }
    let mut stream = output.stdout();
    for entry in entries() {
        let line = format!("{}  {:<28} {}", entry.code.bold(), entry.name, entry.summary);
        if writeln!(stream, "{line}").is_err() {
            break; // `cogn explain | head` is not a failure.
        }
    }
    Ok(())
}

fn show(entry: &ExplainedCode, output: &Output) -> Result<()> {
    if output.json {
        output.json(entry)?;
    } else {
        output.line(markdown::render(entry.page.unwrap_or_default()).trim_end())?;
    }
    Ok(())
}

fn entries() -> impl Iterator<Item = ExplainedCode> {
    Code::all().map(of_code).chain(Rule::all().map(of_rule))
}

/// Finds a code by number or name, in any case, with hyphens or underscores, or by an old name.
fn find(text: &str) -> Option<ExplainedCode> {
    let text = text.trim();
    let upper = text.to_uppercase().replace('-', "_");
    let lower = text.to_lowercase().replace('_', "-");
    let warning = || Code::all().find(|code| code.name() == upper);
    Code::find(&upper)
        .or_else(warning)
        .map(of_code)
        .or_else(|| Rule::find(&upper).or_else(|| Rule::find(&lower)).map(of_rule))
}

fn unknown(text: &str) -> anyhow::Error {
    if is_module_specific(text) {
        let hint = "codes from E5000 on belong to modules; see `error_codes` in the module's manifest";
        return hinted(format!("{text} is defined by a module, not by cogn"), hint);
    }
    let all: Vec<_> = entries().collect();
    let words = all.iter().flat_map(|entry| [entry.code, entry.name]);
    let near = similar(text, words);
    let hint = if near.is_empty() {
        String::from("`cogn explain` without a code lists all codes")
    } else {
        format!(
            "did you mean {}? `cogn explain` lists all codes",
            near[..near.len().min(SUGGESTIONS_MAX)].join(", ")
        )
    };
    hinted(format!("unknown code `{text}`"), hint)
}

fn of_code(code: Code) -> ExplainedCode {
    let is_error = !code.is_warning();
    ExplainedCode {
        code: code.as_str(),
        name: code.name(),
        kind: if is_error { "error" } else { "warning" },
        summary: code.summary(),
        http_status: is_error.then(|| code.http_status()),
        recoverable: is_error.then(|| match code.recoverable() {
            Recoverable::Yes => "yes",
            Recoverable::No => "no",
            Recoverable::Depends => "depends",
        }),
        suggestion: Some(code.suggestion()),
        severity: if is_error { "error" } else { "warning" },
        page: error_pages::page(code.as_str()),
    }
}

fn of_rule(rule: Rule) -> ExplainedCode {
    ExplainedCode {
        code: rule.code(),
        name: rule.name(),
        kind: "diagnostic",
        summary: rule.summary(),
        http_status: None,
        recoverable: None,
        suggestion: None,
        severity: rule.severity().as_str(),
        page: error_pages::page(rule.code()),
    }
}
