//! The configuration as types. Every key here is read by something; the schema beside it says the same to
//! editors, and refuses what is not here.

use std::path::PathBuf;

use anyhow::Result;
use ir::Feature;
use serde::Deserialize;
use serde_json::Value;

use super::merged::Merged;
use super::schema::problems;
use crate::output::hinted;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    #[serde(default)]
    pub(crate) credentials: Vec<Credential>,
    #[serde(default)]
    pub(crate) backends: Vec<Backend>,
    pub(crate) timeouts: Timeouts,
}

/// A name for a secret that is kept elsewhere.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Credential {
    pub(crate) name: String,
    /// The variable that holds it.
    pub(crate) env: Option<String>,
    /// The file that holds it.
    pub(crate) file: Option<PathBuf>,
}

/// An instance one can call.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Backend {
    pub(crate) name: String,
    pub(crate) kind: BackendKind,
    /// What stands before `/chat/completions`; for anthropic before `/v1/messages`.
    pub(crate) base_url: Option<String>,
    /// The only model it answers with.
    pub(crate) model: Option<String>,
    pub(crate) credential: Option<String>,
    /// What it can do; each kind has its own default.
    pub(crate) features: Option<Vec<Feature>>,
    /// The file that a scripted back-end plays.
    pub(crate) script: Option<PathBuf>,
    /// 0 takes no new work.
    #[serde(default = "usual_weight")]
    pub(crate) weight: u32,
    /// Higher is tried first.
    #[serde(default)]
    pub(crate) priority: i32,
}

fn usual_weight() -> u32 {
    100
}

/// What stands behind a back-end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BackendKind {
    Openai,
    Anthropic,
    Scripted,
}

/// Each limit on its own, so that a slow first word and a silent stream are told apart.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Timeouts {
    pub(crate) connect_ms: u64,
    pub(crate) first_byte_ms: u64,
    pub(crate) idle_ms: u64,
    pub(crate) total_ms: u64,
}

impl Settings {
    /// The settings in a tree that is good; else all that is wrong with it.
    pub(crate) fn of(merged: &Merged) -> Result<Self> {
        let problems = problems(merged)?;
        if !problems.is_empty() {
            let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
            let message = format!("the configuration is not good:\n  {}", lines.join("\n  "));
            return Err(hinted(message, "`cogn config check` says the same with hints"));
        }
        Ok(serde_json::from_value(Value::Object(merged.tree.clone()))?)
    }
}
