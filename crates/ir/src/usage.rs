//! Usage of a call. Unknown is `None`, never zero.
//!
//! One convention for all providers: `input_tokens` counts all input, cached or not, and `output_tokens`
//! all output, including reasoning; the other counts are parts of these two.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::decimal::Decimal;
use crate::dialect::Dialect;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cache_read_tokens: Option<u64>,
    pub cache_write_tokens: Option<u64>,
    pub reasoning_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_audio_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_audio_tokens: Option<u64>,
    /// Cost in US dollars: as reported by the provider, otherwise computed from known prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Decimal>,
    /// Counted by the gateway, not by the provider.
    pub estimated: bool,
    /// The provider's usage object, unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<RawUsage>,
}

/// A provider's usage object in its dialect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RawUsage {
    pub dialect: String,
    pub usage: Value,
}

impl Usage {
    pub fn total_tokens(&self) -> Option<u64> {
        self.input_tokens?.checked_add(self.output_tokens?)
    }

    /// The provider's usage object, if it is in this dialect.
    pub fn raw_in(&self, dialect: Dialect) -> Option<&Value> {
        self.raw
            .as_ref()
            .filter(|raw| raw.dialect == dialect.as_str())
            .map(|raw| &raw.usage)
    }

    #[must_use]
    pub fn with_raw(mut self, dialect: Dialect, usage: Value) -> Self {
        self.raw = Some(RawUsage {
            dialect: String::from(dialect.as_str()),
            usage,
        });
        self
    }

    /// Applies a later report. Reports are totals, so they replace earlier values.
    pub fn update(&mut self, later: Self) {
        let newer = |slot: &mut Option<u64>, value: Option<u64>| {
            if value.is_some() {
                *slot = value;
            }
        };
        newer(&mut self.input_tokens, later.input_tokens);
        newer(&mut self.output_tokens, later.output_tokens);
        newer(&mut self.cache_read_tokens, later.cache_read_tokens);
        newer(&mut self.cache_write_tokens, later.cache_write_tokens);
        newer(&mut self.reasoning_tokens, later.reasoning_tokens);
        newer(&mut self.input_audio_tokens, later.input_audio_tokens);
        newer(&mut self.output_audio_tokens, later.output_audio_tokens);
        if later.cost_usd.is_some() {
            self.cost_usd = later.cost_usd;
        }
        if later.raw.is_some() {
            self.raw = later.raw;
        }
        self.estimated = later.estimated;
    }
}
