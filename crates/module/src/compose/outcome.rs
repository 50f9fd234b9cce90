//! The outcome of a composition after all steps have ended: either the module's own model is called, or the
//! answer is composed of the results.
//!
//! The own model is called if the prompt uses results or data flows into the module. Otherwise the answer is
//! the data that flows into `output`, or the last result of a conditional composition.

use serde_json::{Map, Value, json};

use super::flow::{CompositionMachine, Outcome, payload};
use super::segment::{Segment, segments};
use super::step::StepSource;
use crate::envelope::Risk;
use crate::manifest::Pattern;

pub(super) fn of(flow: &CompositionMachine) -> Outcome {
    let ask = || Outcome::Ask {
        input: flow.own_input(),
        results: flow.results.clone(),
    };
    let uses_results = segments(&flow.module.prompt)
        .iter()
        .any(|segment| !matches!(segment, Segment::Text(_)));
    if uses_results || !flow.layout.lines_into(flow.module.name()).is_empty() {
        return ask();
    }
    let into_output = flow.layout.lines_into("output");
    if let Some(data) = flow.merged_data(&into_output) {
        let lines = into_output.iter().filter_map(|line| flow.layout.lines.get(*line));
        let sources = lines
            .flat_map(|line| &line.from)
            .filter_map(|source| match source {
                StepSource::Input => None,
                StepSource::Step { id, .. } => Some(id.as_str()),
            });
        return Outcome::Answer(compose(flow, data, &sources.collect::<Vec<_>>()));
    }
    let current = flow.current.and_then(|index| flow.layout.steps.get(index));
    let conditional = flow.module.manifest.composition.pattern == Pattern::Conditional;
    match current.and_then(|step| Some((step, flow.results.get(&step.id)?))) {
        Some((step, envelope)) if conditional => {
            let data = match payload(envelope) {
                Value::Object(data) => data,
                _ => Map::new(),
            };
            Outcome::Answer(compose(flow, data, &[step.id.as_str()]))
        }
        _ => ask(),
    }
}

/// An envelope around composed data, with the minimum confidence and the maximum risk of its parts.
fn compose(flow: &CompositionMachine, mut data: Map<String, Value>, sources: &[&str]) -> Map<String, Value> {
    let mut parts: Vec<(&str, &Value)> = Vec::new();
    for id in sources {
        match flow.results.get(id) {
            Some(envelope) if envelope.is_object() && parts.iter().all(|(known, _)| known != id) => {
                parts.push((id, envelope));
            }
            _ => {}
        }
    }
    let confidence = parts
        .iter()
        .filter_map(|(_, envelope)| envelope.pointer("/meta/confidence")?.as_f64())
        .fold(1.0, f64::min);
    let risk = parts.iter().map(|(_, envelope)| {
        let risk = envelope.pointer("/meta/risk").and_then(Value::as_str);
        risk.and_then(Risk::find).unwrap_or(Risk::High)
    });
    let risk = risk.max().unwrap_or(Risk::Medium);
    let explain = match parts.as_slice() {
        [(_, only)] => only
            .pointer("/meta/explain")
            .and_then(Value::as_str)
            .map(String::from),
        _ => None,
    };
    let names: Vec<&str> = parts.iter().map(|(id, _)| *id).collect();
    let explain = explain.unwrap_or_else(|| format!("Composed of {}", names.join(", ")));
    if !data.contains_key("rationale") {
        let reasons = parts.iter().filter_map(|(id, envelope)| {
            let rationale = envelope.pointer("/data/rationale")?.as_str()?;
            Some(format!("{id}: {rationale}"))
        });
        let reasons: Vec<String> = reasons.collect();
        if !reasons.is_empty() {
            data.insert(String::from("rationale"), Value::String(reasons.join("\n\n")));
        }
    }
    let mut envelope = Map::new();
    envelope.insert(String::from("ok"), Value::Bool(true));
    let meta = json!({"confidence": confidence, "risk": risk.as_str(), "explain": explain});
    envelope.insert(String::from("meta"), meta);
    envelope.insert(String::from("data"), Value::Object(data));
    envelope
}
