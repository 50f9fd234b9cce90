//! The criteria of gates. The same rules apply to runs and to saved envelopes.

use std::collections::BTreeMap;
use std::fmt;

use module::envelope::Risk;
use serde_json::Value;

/// The rules of a configuration: a general one, and rules of single modules that replace it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gates {
    pub general: Option<GateRule>,
    pub modules: BTreeMap<String, GateRule>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct GateRule {
    pub min_confidence: Option<f64>,
    pub max_risk: Option<Risk>,
    pub action: GateAction,
}

/// The action for an answer that does not pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GateAction {
    /// Require a review.
    #[default]
    Review,
    /// Call this back-end; if its answer does not pass either, require a review of that.
    Rerun { backend: String },
}

/// Why an answer does not pass.
#[derive(Clone, Debug, PartialEq)]
pub enum GateFailure {
    Confidence {
        actual: Option<f64>,
        min: f64,
    },
    Risk {
        actual: Option<Risk>,
        max: Risk,
    },
    /// The answer is a failure, which never passes.
    Failed {
        code: String,
    },
}

impl Gates {
    pub fn for_module(&self, module: &str) -> Option<&GateRule> {
        self.modules.get(module).or(self.general.as_ref())
    }
}

impl GateRule {
    /// Why an envelope does not pass. Unreadable values count as the worst.
    pub fn failures(&self, envelope: &Value) -> Vec<GateFailure> {
        let mut found = Vec::new();
        if envelope.get("ok") != Some(&Value::Bool(true)) {
            let code = envelope.pointer("/error/code").and_then(Value::as_str);
            found.push(GateFailure::Failed {
                code: String::from(code.unwrap_or("no envelope")),
            });
            return found;
        }
        let confidence = envelope.pointer("/meta/confidence").and_then(Value::as_f64);
        let risk = envelope
            .pointer("/meta/risk")
            .and_then(Value::as_str)
            .and_then(Risk::find);
        found.extend(self.evaluate(confidence, risk));
        found
    }

    /// The same for a success whose meta is decoded.
    pub fn evaluate(&self, confidence: Option<f64>, risk: Option<Risk>) -> Vec<GateFailure> {
        let mut found = Vec::new();
        if let Some(min) = self.min_confidence
            && confidence.is_none_or(|confidence| confidence.is_nan() || confidence < min)
        {
            found.push(GateFailure::Confidence {
                actual: confidence,
                min,
            });
        }
        if let Some(max) = self.max_risk
            && risk.is_none_or(|risk| risk > max)
        {
            found.push(GateFailure::Risk { actual: risk, max });
        }
        found
    }
}

impl fmt::Display for GateFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Confidence {
                actual: Some(actual),
                min,
            } => {
                write!(f, "confidence {actual} is below {min}")
            }
            Self::Confidence { actual: None, min } => {
                write!(f, "confidence is missing; the minimum is {min}")
            }
            Self::Risk {
                actual: Some(actual),
                max,
            } => write!(f, "risk {actual} is above {max}"),
            Self::Risk { actual: None, max } => {
                write!(f, "unknown risk level; the maximum is {max}")
            }
            Self::Failed { code } => write!(f, "the answer is a failure ({code})"),
        }
    }
}
