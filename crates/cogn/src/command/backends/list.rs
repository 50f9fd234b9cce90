//! `cogn backends list`: the back-ends as a list.

use anyhow::Result;
use owo_colors::OwoColorize;
use serde_json::{Value, json};

use crate::backends::ConfiguredBackend;
use crate::output::Output;

pub(super) fn print(listed: &[ConfiguredBackend], output: &Output) -> Result<()> {
    if output.json {
        return Ok(output.json(&listed.iter().map(row).collect::<Vec<_>>())?);
    }
    for back_end in listed {
        let candidate = &back_end.candidate;
        let model = candidate.model.as_deref().unwrap_or("(any model)");
        let state = match &back_end.instances {
            Err(unavailable) => format!("unavailable: {}", unavailable.reason).red().to_string(),
            Ok(_) if candidate.weight == 0 => String::from("out of service (weight 0)"),
            Ok(keys) if keys.len() > 1 => format!("{}, {} keys", "available".green(), keys.len()),
            Ok(_) => "available".green().to_string(),
        };
        output.line(format!(
            "{:<16} {:<10} {model:<28} {state}",
            candidate.name.bold(),
            candidate.kind
        ))?;
        let features: Vec<_> = candidate
            .features
            .iter()
            .map(|feature| feature.as_str().trim_start_matches("supports_"))
            .collect();
        output.line(format!("  {}", features.join(", ").dimmed()))?;
        if let Some(hint) = back_end
            .instances
            .as_ref()
            .err()
            .and_then(|why| why.hint.as_ref())
        {
            output.line(format!("  {} {hint}", "help:".cyan()))?;
        }
    }
    Ok(())
}

fn row(back_end: &ConfiguredBackend) -> Value {
    let candidate = &back_end.candidate;
    let why = back_end.instances.as_ref().err();
    json!({
        "name": candidate.name,
        "kind": candidate.kind,
        "base_url": back_end.base_url,
        "model": candidate.model,
        "operations": candidate.operations,
        "features": candidate.features,
        "weight": candidate.weight,
        "priority": candidate.priority,
        "region": candidate.region,
        "keys": back_end.instances.as_ref().map_or(0, Vec::len),
        "available": why.is_none(),
        "reason": why.map(|why| &why.reason),
        "hint": why.and_then(|why| why.hint.as_ref()),
    })
}
