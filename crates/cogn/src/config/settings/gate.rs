//! `[gate]`: how sure and how harmless an answer must be, in general and module by module.

use std::collections::BTreeMap;

use serde::Deserialize;

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Gate {
    pub(crate) min_confidence: Option<f64>,
    /// One of the levels of risk that modules know.
    pub(crate) max_risk: Option<String>,
    /// For `rerun`: the stronger back-end.
    pub(crate) backend: Option<String>,
    pub(crate) action: Option<GateAction>,
    /// Single modules; what they leave out holds as above.
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

/// What becomes of an answer that does not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GateAction {
    Rerun,
    Review,
}

impl Gate {
    /// What holds for one module; `None` where nothing is asked of its answers.
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
