//! `cogn doctor`: checks everything that a run needs on this machine, and contacts the back-ends without a request
//! to a model. Each finding has a state and, if something is wrong, a hint how to fix it.

mod backend;
mod filesystem;
mod finding;
mod hardware;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use owo_colors::OwoColorize;
use spill::SpillStore;

use self::finding::{Finding, State};
use crate::backends::BackendCatalog;
use crate::config::{Settings, Sources};
use crate::duration::Duration;
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
    /// Do not contact the back-ends.
    #[arg(long)]
    offline: bool,
    /// Time limit for contacting a back-end (500ms, 5s).
    #[arg(long, value_name = "TIME", default_value = "5s")]
    timeout: Duration,
}

impl Doctor {
    pub(crate) fn run(&self, search: &Search, output: &Output) -> Result<Exit> {
        let mut findings = Vec::new();
        match self.configuration(&mut findings) {
            Some(settings) => self.back_ends(settings, &mut findings)?,
            None => findings.push(Finding::bad(
                "back-ends",
                "not checked: the configuration is invalid",
                "fix the configuration first",
            )),
        }
        findings.push(embedded(&findings));
        findings.push(hardware::advice());
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

    /// Checks the secrets, the network settings and the back-ends.
    fn back_ends(&self, settings: Settings, findings: &mut Vec<Finding>) -> Result<()> {
        findings.extend(backend::secrets(&settings));
        let catalog = BackendCatalog::new(settings, SpillStore::default())?;
        if let Some(problem) = catalog.way_problem() {
            let hint = "fix [network] in the configuration";
            findings.push(Finding::bad("network", problem, hint));
        }
        let patience = std::time::Duration::from_millis(self.timeout.as_millis());
        let patience = (!self.offline).then_some(patience);
        let checking = backend::check_all(catalog.all(), patience);
        let checked = wiring::current_thread_runtime()?.block_on(checking);
        findings.extend(backend::findings(&checked));
        Ok(())
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
