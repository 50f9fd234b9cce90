//! `cogn backends check`: tests of each back-end for connectivity, keys and the declared features.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use engine::port::Upstream;
use futures::StreamExt;
use ir::{Error, ErrorKind, Feature, Operation};
use owo_colors::OwoColorize;
use serde_json::{Value, json};

use super::connectivity::Connectivity;
use super::{operation_probe, probe};
use crate::backends::{ConfiguredBackend, Instance};
use crate::output::Output;

/// Limit of back-ends checked concurrently.
const AT_ONCE_MAX: usize = 8;

#[derive(Debug)]
pub(super) struct BackendReport {
    name: String,
    kind: String,
    /// Why it cannot be called at all.
    unavailable: Option<String>,
    /// One for each key.
    reached: Vec<Connectivity>,
    first_token_ms: Option<u64>,
    features: Vec<ObservedFeature>,
    tasks: Vec<OperationProbe>,
}

/// An operation other than chat; `works` is `None` if it was not tested.
#[derive(Debug)]
struct OperationProbe {
    operation: Operation,
    works: Option<bool>,
    why: Option<String>,
}

/// A feature as declared and as observed; `None`: not known.
#[derive(Debug)]
struct ObservedFeature {
    feature: Feature,
    declared: bool,
    observed: Option<bool>,
    why: Option<String>,
}

impl ObservedFeature {
    /// Declared, but observed not to work.
    fn is_bad(&self) -> bool {
        self.declared && self.observed == Some(false)
    }
}

impl BackendReport {
    pub(super) fn is_good(&self) -> bool {
        let reached = self.reached.iter().all(|reached| reached.error.is_none());
        let failed = self.tasks.iter().any(|task| task.works == Some(false));
        self.unavailable.is_none() && reached && !failed && !self.features.iter().any(ObservedFeature::is_bad)
    }
}

pub(super) async fn all(
    listed: Vec<ConfiguredBackend>,
    connectivity_only: bool,
    patience: Duration,
) -> Vec<BackendReport> {
    let tries = listed.into_iter().map(|listed| async move {
        let listed = listed.tried().await;
        one(&listed, connectivity_only, patience).await
    });
    futures::stream::iter(tries).buffered(AT_ONCE_MAX).collect().await
}

async fn one(listed: &ConfiguredBackend, connectivity_only: bool, patience: Duration) -> BackendReport {
    let mut report = BackendReport {
        name: listed.candidate.name.clone(),
        kind: listed.candidate.kind.clone(),
        unavailable: None,
        reached: Vec::new(),
        first_token_ms: None,
        features: Vec::new(),
        tasks: Vec::new(),
    };
    let instances = match &listed.instances {
        Ok(instances) => instances,
        Err(why) => {
            let help = why.hint.as_ref().map(|hint| format!("; {hint}"));
            report.unavailable = Some(format!("{}{}", why.reason, help.unwrap_or_default()));
            return report;
        }
    };
    for instance in instances {
        if let Instance::Http(http) = instance {
            report.reached.push(Connectivity::of(http, patience).await);
        }
    }
    let works = report.reached.iter().position(|reached| reached.error.is_none());
    let instance = match report.reached.is_empty() {
        true => instances.first(),
        false => works.and_then(|at| instances.get(at)),
    };
    if let Some(instance) = instance.filter(|_| !connectivity_only) {
        observe(&mut report, listed, instance, patience).await;
    }
    report
}

async fn observe(
    report: &mut BackendReport,
    listed: &ConfiguredBackend,
    instance: &Instance,
    patience: Duration,
) {
    // Declares all features, so that undeclared ones are not removed from the request by adaptation.
    let upstream: Arc<dyn Upstream> = match instance {
        Instance::Http(http) => Arc::new(http.declared(Feature::all().into_iter().collect())),
        Instance::Program(_) | Instance::Other(_) => instance.upstream(),
    };
    for operation in &listed.candidate.operations {
        if *operation == Operation::ChatCompletions {
            continue;
        }
        let tried = operation_probe::works(&upstream, *operation, patience).await;
        report.tasks.push(match tried {
            Ok(works) => OperationProbe {
                operation: *operation,
                works,
                why: None,
            },
            Err(error) => OperationProbe {
                operation: *operation,
                works: Some(false),
                why: Some(error.message),
            },
        });
    }
    if !listed.candidate.operations.contains(&Operation::ChatCompletions) {
        return;
    }
    let mut add = |feature: Feature, seen: Result<Option<bool>, Error>| {
        let declared = listed.candidate.features.contains(&feature);
        let (observed, why) = match seen {
            Ok(observed) => (observed, None),
            Err(error) => (observed_from(&error), Some(error.message)),
        };
        report.features.push(ObservedFeature {
            feature,
            declared,
            observed,
            why,
        });
    };
    let spoken = probe::speak(&upstream, patience).await;
    let failed = spoken.as_ref().err().cloned();
    let first_token_ms = spoken.as_ref().ok().and_then(|seen| seen.first_token_ms);
    add(
        Feature::Stream,
        // A single delta does not prove that the back-end cannot stream.
        spoken.map(|seen| (seen.pieces > 1).then_some(true)),
    );
    if failed.is_none() {
        let schema = probe::keeps_schema(&upstream, patience).await;
        add(Feature::JsonSchema, schema.map(Some));
        let tools = probe::calls_tools(&upstream, patience).await;
        add(Feature::Tools, tools.map(Some));
    }
    report.first_token_ms = first_token_ms;
    if let (Some(error), Some(reached)) = (failed, report.reached.first_mut()) {
        reached.error = reached.error.take().or(Some(error));
    } else if let Some(seen) = report.features.first().filter(|_| report.reached.is_empty())
        && let (Some(why), None) = (&seen.why, seen.observed)
    {
        report.unavailable = Some(why.clone());
    }
}

/// Errors of these kinds show that the feature is missing; other errors leave it unknown.
fn observed_from(error: &Error) -> Option<bool> {
    matches!(
        error.kind,
        ErrorKind::InvalidRequest | ErrorKind::Unsupported | ErrorKind::Upstream
    )
    .then_some(false)
}

pub(super) fn print(reports: &[BackendReport], output: &Output) -> Result<()> {
    if output.json {
        return Ok(output.json(&reports.iter().map(row).collect::<Vec<_>>())?);
    }
    for report in reports {
        let verdict = match report.is_good() {
            true => "good".green().to_string(),
            false => "bad".red().to_string(),
        };
        output.line(format!("{} ({}): {verdict}", report.name.bold(), report.kind))?;
        if let Some(why) = &report.unavailable {
            output.line(format!("  unavailable: {why}"))?;
        }
        for (number, reached) in (1..).zip(&report.reached) {
            let which = match report.reached.len() {
                1 => String::new(),
                _ => format!("key {number}: "),
            };
            let text = reached.describe();
            let text = match reached.error {
                Some(_) => text.red().to_string(),
                None => text,
            };
            output.line(format!("  {which}{text}"))?;
        }
        if let Some(ms) = report.first_token_ms {
            output.line(format!("  first token after {ms} ms"))?;
        }
        for seen in &report.features {
            output.line(format!("  {}: {}", seen.feature, observed_text(seen)))?;
        }
        for task in &report.tasks {
            output.line(format!("  {}: {}", task.operation.as_str(), tried_text(task)))?;
        }
    }
    Ok(())
}

fn tried_text(task: &OperationProbe) -> String {
    match (task.works, &task.why) {
        (Some(true), _) => String::from("works"),
        (Some(false), Some(why)) => format!("{} ({why})", "does not work".red()),
        (Some(false), None) => "does not work".red().to_string(),
        (None, _) => String::from("not tried"),
    }
}

fn observed_text(seen: &ObservedFeature) -> String {
    let declared = if seen.declared { "declared" } else { "not declared" };
    let text = match (seen.declared, seen.observed) {
        (true, Some(false)) => format!("{declared}, but not observed").red().to_string(),
        (false, Some(true)) => format!("{declared}, but observed: can be declared")
            .yellow()
            .to_string(),
        (_, Some(true)) => format!("{declared} and observed"),
        (_, Some(false)) => format!("{declared} and not observed"),
        (_, None) => format!("{declared}, unknown"),
    };
    match &seen.why {
        Some(why) => format!("{text} ({why})"),
        None => text,
    }
}

fn row(report: &BackendReport) -> Value {
    let reached = report.reached.iter().map(|reached| {
        let error = reached.error.as_ref();
        json!({
            "ok": error.is_none(),
            "latency_ms": reached.latency_ms,
            "models": reached.models,
            "credentials_refused": error.is_some_and(|error| error.kind == ErrorKind::Auth),
            "error": error.map(|error| json!({
                "code": error.cognitive_code(),
                "message": error.message,
                "status": error.status,
            })),
        })
    });
    let features = report.features.iter().map(|seen| {
        json!({
            "feature": seen.feature,
            "declared": seen.declared,
            "observed": seen.observed,
            "why": seen.why,
        })
    });
    let operations = report
        .tasks
        .iter()
        .map(|task| json!({"operation": task.operation, "works": task.works, "why": task.why}));
    json!({
        "name": report.name,
        "kind": report.kind,
        "good": report.is_good(),
        "unavailable": report.unavailable,
        "reached": reached.collect::<Vec<_>>(),
        "first_token_ms": report.first_token_ms,
        "features": features.collect::<Vec<_>>(),
        "operations": operations.collect::<Vec<_>>(),
    })
}
