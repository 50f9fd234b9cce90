//! `[gate]`: minimum confidence and maximum risk of answers, in general and per module.

use std::collections::BTreeMap;

use serde::Deserialize;

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Gate {
    pub(crate) min_confidence: Option<f64>,
    /// A risk level as in envelopes.
    pub(crate) max_risk: Option<String>,
    /// For `rerun`: the back-end to call again.
    pub(crate) backend: Option<String>,
    pub(crate) action: Option<GateAction>,
    /// Rules of single modules; missing values are taken from the general rule.
    pub(crate) modules: BTreeMap<String, GateRule>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GateRule {
    pub(crate) min_confidence: Option<f64>,
    pub(crate) max_risk: Option<String>,
    pub(crate) backend: Option<String>,
    pub(crate) action: Option<GateAction>,
}

/// The action for an answer that does not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GateAction {
    Rerun,
    Review,
}

impl Gate {
    /// The rule of one module; `None` if it sets no limit.
    pub(crate) fn for_module(&self, module: &str) -> Option<GateRule> {
        let own = self.modules.get(module).cloned().unwrap_or_default();
        let rule = GateRule {
            min_confidence: own.min_confidence.or(self.min_confidence),
            max_risk: own.max_risk.or_else(|| self.max_risk.clone()),
            backend: own.backend.or_else(|| self.backend.clone()),
            action: own.action.or(self.action),
        };
        (rule.min_confidence.is_some() || rule.max_risk.is_some()).then_some(rule)
    }
}
