//! What a module may do besides answering. Everything is denied unless the author allows it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    Allow,
    #[default]
    Deny,
}

/// Policies by name. Both spellings (`network: deny`, `network_allowed: false`) are stored here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Policies(pub BTreeMap<String, Access>);

impl Policies {
    /// The declared policy, or deny.
    pub fn access(&self, name: &str) -> Access {
        self.0.get(name).copied().unwrap_or_default()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolPolicy {
    AllowByDefault,
    #[default]
    DenyByDefault,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tools {
    pub policy: ToolPolicy,
    pub allowed: Vec<String>,
    pub denied: Vec<String>,
}

impl Tools {
    /// A tool named in both lists is denied.
    pub fn permits(&self, tool: &str) -> bool {
        if self.denied.iter().any(|name| name == tool) {
            return false;
        }
        match self.policy {
            ToolPolicy::AllowByDefault => true,
            ToolPolicy::DenyByDefault => self.allowed.iter().any(|name| name == tool),
        }
    }
}
