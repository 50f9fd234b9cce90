//! The meta of an answer: confidence, risk and a one-sentence explanation.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::repair::truncate;

/// Risk levels in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    None,
    Low,
    Medium,
    High,
}

impl Risk {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// The level with exactly this spelling.
    pub fn find(text: &str) -> Option<Self> {
        Some(match text {
            "none" => Self::None,
            "low" => Self::Low,
            "medium" => Self::Medium,
            "high" => Self::High,
            _ => return None,
        })
    }

    /// The level with this spelling, ignoring case and surrounding white space.
    pub fn guess(text: &str) -> Option<Self> {
        Self::find(text).or_else(|| Self::find(&text.trim().to_ascii_lowercase()))
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A complete meta. `risk` is a level, or the object that a module's own schema allows instead; further
/// fields (`trace_id`, `model`, `repairs`, fields added by the model) are kept in `more`.
#[derive(Clone, Debug, PartialEq)]
pub struct Meta {
    pub confidence: f64,
    pub risk: Value,
    pub explain: String,
    pub more: Map<String, Value>,
}

impl Meta {
    pub fn new(confidence: f64, risk: Risk, explain: impl Into<String>) -> Self {
        Self {
            confidence,
            risk: Value::String(String::from(risk.as_str())),
            explain: explain.into(),
            more: Map::new(),
        }
    }

    /// The meta of a failure without a meta of its own: confidence 0 and high risk.
    pub fn of_failure(message: &str) -> Self {
        Self::new(0.0, Risk::High, truncate(message.trim()))
    }

    /// A meta whose structure has been checked.
    pub(super) fn from_map(map: Map<String, Value>) -> Self {
        let (mut confidence, mut risk, mut explain) = (None, None, String::new());
        let mut more = Map::new();
        for (key, value) in map {
            match (key.as_str(), value) {
                ("confidence", value) => confidence = value.as_f64(),
                ("risk", value) => risk = Some(value),
                ("explain", Value::String(text)) => explain = text,
                ("explain", _) => {}
                (_, value) => {
                    more.insert(key, value);
                }
            }
        }
        Self {
            confidence: confidence.unwrap_or_default(),
            risk: risk.unwrap_or_else(|| Value::from(Risk::High.as_str())),
            explain,
            more,
        }
    }

    /// The level to apply: a custom risk object counts as high.
    pub fn risk_level(&self) -> Risk {
        self.risk.as_str().and_then(Risk::find).unwrap_or(Risk::High)
    }

    pub fn into_map(self) -> Map<String, Value> {
        let mut map = Map::with_capacity(3 + self.more.len());
        map.insert(String::from("confidence"), Value::from(self.confidence));
        map.insert(String::from("risk"), self.risk);
        map.insert(String::from("explain"), Value::String(self.explain));
        map.extend(self.more);
        map
    }
}
