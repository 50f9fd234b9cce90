//! Converts `[gate]` of the configuration to the gate rules of the engine.

use std::path::Path;

use anyhow::Result;
use engine::gate::Gates;
use module::envelope::Risk;

use crate::backends::BackendName;
use crate::config::{Gate, GateAction, GateRule, Settings, Sources};

/// The rules of a command. If all back-ends are scripts, the configuration is not read.
pub(crate) fn configured(names: &[BackendName], config: Option<&Path>) -> Result<Gates> {
    let scripts_only = names.iter().all(|name| matches!(name, BackendName::Scripted(_)));
    if !names.is_empty() && scripts_only && config.is_none() {
        return Ok(Gates::default());
    }
    let settings = Settings::of(&Sources::from_environment(config)?.merge()?)?;
    Ok(rules(&settings.gate))
}

pub(crate) fn rules(gate: &Gate) -> Gates {
    // The section of a module is merged with the general one; the empty name selects only the general one.
    let names = gate.modules.keys();
    Gates {
        general: gate.for_module("").map(|rule| read(&rule)),
        modules: names
            .map(|name| {
                let rule = gate.for_module(name).map(|rule| read(&rule));
                (name.clone(), rule.unwrap_or_default())
            })
            .collect(),
    }
}

fn read(rule: &GateRule) -> engine::gate::GateRule {
    let action = match (&rule.backend, rule.action) {
        (Some(backend), None | Some(GateAction::Rerun)) => engine::gate::GateAction::Rerun {
            backend: backend.clone(),
        },
        _ => engine::gate::GateAction::Review,
    };
    engine::gate::GateRule {
        min_confidence: rule.min_confidence,
        max_risk: rule.max_risk.as_deref().and_then(Risk::find),
        action,
    }
}
