//! `cogn doctor`: checks everything that a run needs on this machine, without network requests. Each finding
//! has a state and, if something is wrong, a hint how to fix it.

mod filesystem;
mod finding;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use owo_colors::OwoColorize;
use spill::SpillStore;

use self::finding::{Finding, State};
use crate::backends::{BackendCatalog, ConfiguredBackend, Unavailable};
use crate::config::{self, Settings, Sources};
use crate::exit::Exit;
use crate::models::{self, ModelUnavailable};
use crate::modules::Search;
use crate::output::Output;
use crate::wiring;

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Use this file instead of the project's cogn.toml.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Doctor {
    pub(crate) fn run(&self, search: &Search, output: &Output) -> Result<Exit> {
        let mut findings = Vec::new();
        match self.configuration(&mut findings) {
            Some(settings) => back_ends(settings, &mut findings)?,
            None => findings.push(Finding::bad(
                "back-ends",
                "not checked: the configuration is invalid",
                "fix the configuration first",
            )),
        }
        findings.push(embedded(&findings));
        findings.push(filesystem::modules(search));
        findings.extend(filesystem::folders());
        for finding in &findings {
            if !output.json {
                output.line(text(finding))?;
            }
        }
        if output.json {
            output.json(&findings.iter().map(Finding::json).collect::<Vec<_>>())?;
        }
        let bad = findings.iter().any(|finding| finding.state == State::Error);
        Ok(if bad { Exit::Failure } else { Exit::Success })
    }

    fn configuration(&self, findings: &mut Vec<Finding>) -> Option<Settings> {
        let finding = match self.read() {
            Ok((settings, from)) => {
                findings.push(Finding::ok("configuration", format!("valid ({from})")));
                return Some(settings);
            }
            Err(error) => Finding::bad(
                "configuration",
                format!("{error:#}"),
                "`cogn config check` shows every problem with a hint",
            ),
        };
        findings.push(finding);
        None
    }

    /// The settings, and the files they came from.
    fn read(&self) -> Result<(Settings, String)> {
        let sources = Sources::from_environment(self.config.as_deref())?;
        let files = sources.all_files().filter(|path| path.is_file());
        let files: Vec<_> = files.map(|path| path.display().to_string()).collect();
        let settings = Settings::of(&sources.merge()?)?;
        let from = match files.is_empty() {
            true => String::from("no file; defaults and the environment"),
            false => files.join(", "),
        };
        Ok((settings, from))
    }
}

/// Checks the secrets, the network settings and the back-ends.
fn back_ends(settings: Settings, findings: &mut Vec<Finding>) -> Result<()> {
    for credential in &settings.credentials {
        let name = format!("secret {}", credential.name);
        let used = settings
            .backends
            .iter()
            .any(|backend| backend.keys().contains(&credential.name.as_str()));
        findings.push(match config::resolve(credential) {
            Ok(_) => Finding::ok(name, "found"),
            Err(reason) if used => Finding::warn(name, reason, "set it, or remove the back-end that uses it"),
            Err(reason) => Finding::ok(name, format!("{reason}; no back-end uses it")),
        });
        findings.extend(credential.file.as_deref().and_then(filesystem::too_open));
    }
    let catalog = BackendCatalog::new(settings, SpillStore::default())?;
    if let Some(problem) = catalog.way_problem() {
        let hint = "fix [network] in the configuration";
        findings.push(Finding::bad("network", problem, hint));
    }
    let trials = catalog.all().into_iter().map(ConfiguredBackend::tried);
    let listed = wiring::current_thread_runtime()?.block_on(futures::future::join_all(trials));
    let usable = listed.iter().filter(|listed| listed.is_usable()).count();
    for back_end in &listed {
        let name = format!("back-end {}", back_end.candidate.name);
        findings.push(match &back_end.instances {
            Ok(_) if back_end.candidate.weight == 0 => Finding::ok(name, "out of service (weight 0)"),
            Ok(_) => Finding::ok(name, format!("usable ({})", back_end.candidate.kind)),
            Err(Unavailable { reason, hint }) => {
                let hint = hint
                    .as_deref()
                    .unwrap_or("`cogn config show --explain` shows where it comes from");
                match usable {
                    0 => Finding::bad(name, reason, hint),
                    _ => Finding::warn(name, reason, hint),
                }
            }
        });
    }
    if usable == 0 {
        let hint = "set a vendor's key such as OPENAI_API_KEY, or add [[backends]] to cogn.toml";
        findings.push(Finding::bad("back-ends", "none is usable", hint));
    }
    Ok(())
}

/// Checks the embedded model. It is optional if another back-end is usable.
fn embedded(before: &[Finding]) -> Finding {
    let others = before
        .iter()
        .any(|finding| finding.name.starts_with("back-end ") && finding.state == State::Ok);
    match models::embedded("local", None) {
        Ok(_) => Finding::ok("embedded model", "weights installed"),
        Err(ModelUnavailable { reason, .. }) if others => {
            Finding::ok("embedded model", format!("{reason}; other back-ends are usable"))
        }
        Err(ModelUnavailable { reason, hint }) => Finding::warn("embedded model", reason, &hint),
    }
}

fn text(finding: &Finding) -> String {
    let state = match finding.state {
        State::Ok => "ok  ".green().to_string(),
        State::Warn => "warn".yellow().to_string(),
        State::Error => "bad ".red().to_string(),
    };
    let hint = match &finding.hint {
        Some(hint) => format!("\n     {} {hint}", "help:".cyan()),
        None => String::new(),
    };
    format!("{state} {}: {}{hint}", finding.name.bold(), finding.message)
}
