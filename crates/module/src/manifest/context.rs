//! The context that a module accepts and emits.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextMode {
    /// A separate copy; nothing is returned to the caller's context.
    Fork,
    #[default]
    Main,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Context {
    pub mode: ContextMode,
    pub accepts: Vec<ContextAccept>,
    pub emits: Vec<ContextEmit>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextAccept {
    #[serde(rename = "type")]
    pub kind: String,
    pub required: bool,
    pub max_turns: Option<u64>,
    pub fields: Option<Vec<String>>,
    pub schema: Option<String>,
    /// Seconds; 0 for this request, -1 without expiry.
    pub ttl: Option<i64>,
    pub from_module: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextEmit {
    #[serde(rename = "type")]
    pub kind: String,
    pub ttl: Option<i64>,
    pub key_pattern: Option<String>,
    pub schema: Option<String>,
}
