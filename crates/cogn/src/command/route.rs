//! `cogn route`: the back-ends that a request would be sent to, and why. It plans like a run but calls no
//! back-end. With the seed of an earlier run it reproduces the plan of that run.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use engine::fleet::{BackendSelector, Fleet, NextBackend};
use engine::route::{Explanation, Selected};
use ir::{Error, Request};
use module::lower::{LowerOptions, admit_input, lower};
use owo_colors::OwoColorize;
use serde_json::{Value, json};
use spill::SpillStore;

use super::run::read_file;
use crate::backends::{self, BackendCatalog, ConfiguredBackend};
use crate::command_engine::BackendArgs;
use crate::config::{Settings, Sources};
use crate::exit::Exit;
use crate::modules::Search;
use crate::output::{Output, hinted};
use crate::wiring;

#[derive(Debug, Args)]
pub(crate) struct Route {
    /// A request in canonical form, as JSON; with --module, the module's input. `-` reads standard input.
    request: Option<PathBuf>,
    /// Also show excluded back-ends with the reason, and the numbers behind the order.
    #[arg(long)]
    explain: bool,
    /// Plan the request that this module builds from the input.
    #[arg(long, value_name = "MODULE")]
    module: Option<String>,
    /// The random seed of the plan; the seed of a run is in its trace.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// The turn number of the plan, for policies that rotate.
    #[arg(long, value_name = "N", default_value_t = 0)]
    turn: u64,
    #[command(flatten)]
    asked: BackendArgs,
}

impl Route {
    pub(crate) fn run(self, search: &Search, output: &Output) -> Result<Exit> {
        let request = self.request(search)?;
        let fleet = Arc::new(self.fleet()?);
        let refusal = |error: Error| {
            let code = error.cognitive_code();
            hinted(
                format!("{error} ({code})"),
                "`cogn explain` shows what the code means",
            )
        };
        let explanation = fleet
            .explain(&request, self.seed, self.turn, 0)
            .map_err(refusal)?;
        let no_backend = match explanation.selected.is_empty() {
            false => None,
            true => no_backend(&fleet, &request),
        };
        if output.json {
            output.json(&as_json(&request, &explanation, no_backend.as_ref()))?;
        } else if self.explain {
            print(output, &explanation, no_backend.as_ref())?;
        } else {
            for selected in &explanation.selected {
                output.line(label(selected))?;
            }
            if let Some(error) = &no_backend {
                let message = error.message_with_reasons();
                output.note(format!("{message} ({})", error.cognitive_code()));
            }
        }
        let good = !explanation.selected.is_empty();
        Ok(if good { Exit::Success } else { Exit::Failure })
    }

    /// All configured back-ends, also those that cannot be called: their exclusion is part of the output.
    fn fleet(&self) -> Result<Fleet> {
        if !self.asked.backend.is_empty() {
            return backends::fleet(
                &self.asked.backend,
                self.asked.config.as_deref(),
                &SpillStore::default(),
            );
        }
        let sources = Sources::from_environment(self.asked.config.as_deref())?;
        let catalog = BackendCatalog::new(Settings::of(&sources.merge()?)?, SpillStore::default())?;
        let members = catalog
            .all()
            .into_iter()
            .flat_map(ConfiguredBackend::into_members);
        let host = catalog.settings().routing.host()?;
        Ok(Fleet::new(members.collect(), host, catalog.fleet_settings()))
    }

    fn request(&self, search: &Search) -> Result<Request> {
        let Some(name) = &self.module else {
            let path = self.request.as_deref().ok_or_else(|| {
                hinted(
                    "no request given",
                    "give a file, or a module with --module NAME and its input",
                )
            })?;
            let value = read_file(path)?;
            let request: Request = serde_json::from_value(value)
                .with_context(|| format!("{} is not a canonical request", path.display()))?;
            request
                .check()
                .with_context(|| format!("{} is not a valid request", path.display()))?;
            return Ok(request);
        };
        let module = wiring::load_module(&search.find(name)?.path)?;
        let input = match &self.request {
            Some(path) => read_file(path)?,
            None => json!({}),
        };
        let admitted = match admit_input(&module, input) {
            Ok(admitted) => admitted,
            Err(error) => anyhow::bail!("{} ({})", error.message, error.code),
        };
        let options = LowerOptions {
            request_id: String::from("route"),
            model: self.asked.model.clone(),
            ..LowerOptions::default()
        };
        Ok(lower(&module, &admitted.input, &options))
    }
}

/// The error of a run if no back-end can be called.
fn no_backend(fleet: &Arc<Fleet>, request: &Request) -> Option<Error> {
    let mut dispatch = BackendSelector::new(fleet.clone(), Arc::new(request.clone()), 0, 0);
    match dispatch.next(0) {
        NextBackend::Exhausted(error) => Some(*error),
        NextBackend::Use { .. } | NextBackend::Wait { .. } => None,
    }
}

fn label(selected: &Selected) -> String {
    match selected.key {
        0 => selected.name.clone(),
        key => format!("{} (key {})", selected.name, key + 1),
    }
}

fn as_json(request: &Request, explanation: &Explanation, no_backend: Option<&Error>) -> Value {
    let rejected = explanation
        .rejected
        .iter()
        .map(|(name, reason)| json!({"name": name, "reason": reason.to_string()}));
    let mut value = json!({
        "policy": explanation.policy.spec(),
        "seed": explanation.seed,
        "turn": explanation.turn,
        "operation": request.operation(),
        "needs": request.needs(),
        "order": explanation.selected,
        "rejected": rejected.collect::<Vec<_>>(),
    });
    if let (Some(error), Value::Object(map)) = (no_backend, &mut value) {
        map.insert(String::from("code"), Value::from(error.cognitive_code()));
        map.insert(String::from("message"), Value::from(error.message.clone()));
    }
    value
}

fn print(output: &Output, explanation: &Explanation, no_backend: Option<&Error>) -> Result<()> {
    let policy = serde_json::to_value(explanation.policy.spec())?;
    let policy = match policy {
        Value::String(name) => name,
        other => other.to_string(),
    };
    output.line(format!(
        "policy {policy}, seed {}, turn {}",
        explanation.seed, explanation.turn
    ))?;
    if let Some(error) = no_backend {
        output.line(format!("{} {error} ({})", "none:".red(), error.cognitive_code()))?;
    }
    for (place, selected) in (1..).zip(&explanation.selected) {
        output.line(format!(
            "{place:>3}. {}  {}",
            label(selected).bold(),
            numbers(selected)
        ))?;
    }
    for (name, reason) in &explanation.rejected {
        output.line(format!("  {} {}  {reason}", "no".dimmed(), name.bold()))?;
    }
    Ok(())
}

/// The values that determine the position; smaller scores come first.
fn numbers(selected: &Selected) -> String {
    let mut words = vec![
        selected.kind.clone(),
        format!("priority {}", selected.priority),
        format!("weight {}", selected.weight),
        format!("score {:.4}", selected.score),
    ];
    words.extend(selected.model.as_ref().map(|model| format!("only {model}")));
    if selected.preferred {
        words.push(String::from("preferred"));
    }
    if !selected.lacks.is_empty() {
        words.push(format!("without {}", selected.lacks.join(", ")));
    }
    words.join(", ")
}
