//! Routing hints of a request. They can narrow what the server allows, never widen it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ext::Map;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RoutingHints {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    #[serde(alias = "allowlist", skip_serializing_if = "Option::is_none")]
    pub backend_allowlist: Option<Vec<String>>,
    #[serde(alias = "denylist", skip_serializing_if = "Option::is_none")]
    pub backend_denylist: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub preferred_backends: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region_hint: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_hint: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_hint: Option<Value>,
    #[serde(flatten)]
    pub rest: Map,
}

impl RoutingHints {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A policy by name (`"least_inflight"`) or with arguments (`{"name": "hedged", "k": 2}`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PolicySpec {
    Name(String),
    With {
        name: String,
        #[serde(flatten)]
        arguments: Map,
    },
}

impl PolicySpec {
    pub fn name(&self) -> &str {
        match self {
            Self::Name(name) | Self::With { name, .. } => name,
        }
    }
}
