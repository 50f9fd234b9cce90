//! Tiers and the defaults derived from them.

use serde::{Deserialize, Serialize};

use super::response::ResponseMode;
use super::{Enums, Overflow};
use crate::limits;

/// The risk of using an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Applied without review: requires high confidence and low risk.
    Exec,
    /// Supports a human decision.
    Decision,
    /// Ideas; no confidence is required.
    Exploration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strictness {
    High,
    Medium,
    Low,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnumStrategy {
    Strict,
    Extensible,
}

impl Tier {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exec => "exec",
            Self::Decision => "decision",
            Self::Exploration => "exploration",
        }
    }

    pub fn strictness(self) -> Strictness {
        match self {
            Self::Exec => Strictness::High,
            Self::Decision => Strictness::Medium,
            Self::Exploration => Strictness::Low,
        }
    }

    pub fn overflow(self) -> Overflow {
        let (enabled, max_items) = match self {
            Self::Exec => (false, 0),
            Self::Decision => (true, 5),
            Self::Exploration => (true, limits::INSIGHTS_MAX),
        };
        Overflow {
            enabled,
            recoverable: true,
            max_items,
            require_suggested_mapping: true,
        }
    }

    pub fn enums(self) -> Enums {
        let strategy = match self {
            Self::Exec => EnumStrategy::Strict,
            Self::Decision | Self::Exploration => EnumStrategy::Extensible,
        };
        Enums {
            strategy,
            unknown_tag: String::from("custom"),
        }
    }

    pub fn response_mode(self) -> ResponseMode {
        match self {
            Self::Exec => ResponseMode::Sync,
            Self::Decision => ResponseMode::Both,
            Self::Exploration => ResponseMode::Streaming,
        }
    }

    /// Below this an answer fails (exec) or gets a warning (decision).
    pub fn confidence_min(self) -> Option<f64> {
        match self {
            Self::Exec => Some(0.9),
            Self::Decision => Some(0.5),
            Self::Exploration => None,
        }
    }
}
