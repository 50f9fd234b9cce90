//! Run requests, and the part of them that is stored in the journal.

use std::sync::Arc;

use ir::{GenerationOptions, RunId, TraceContext};
use module::manifest::ChunkType;
use module::{Code, Module};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::subscription::Subscription;
use crate::admission::Admission;

/// A request to run a module on an input.
#[derive(Debug)]
pub struct RunRequest {
    pub module: Arc<Module>,
    pub input: Value,
    pub mode: RunMode,
    pub options: RunOptions,
    /// Warnings known before the start, such as a changed mode.
    pub warnings: Vec<Warning>,
    pub admission: Admission,
}

/// A run that a request has started or found, and its subscription.
#[derive(Debug)]
pub struct StartedRun {
    pub id: RunId,
    pub subscription: Subscription,
    /// An earlier request with the same idempotency key has started the run.
    pub replayed: bool,
}

/// How the answer is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunMode {
    /// Only the terminal event is delivered.
    Sync,
    Stream,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDisconnect {
    /// Continue for the grace period.
    #[default]
    Keep,
    Cancel,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunOptions {
    pub on_disconnect: OnDisconnect,
    pub progress: bool,
    /// Overrides the chunk type of the module.
    pub chunk_type: Option<ChunkType>,
    /// The requested model. A back-end that is bound to a model uses that one.
    pub model: Option<String>,
    /// The only back-end that may answer; the host policy still applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// Time limit of the run, unless the module's limit is shorter.
    pub timeout_ms: Option<u64>,
    /// Settings of the model that take precedence over those of the module and the back-end.
    #[serde(skip_serializing_if = "GenerationOptions::is_empty")]
    pub generation: GenerationOptions,
    /// The caller's trace context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            on_disconnect: OnDisconnect::Keep,
            progress: true,
            chunk_type: None,
            model: None,
            backend: None,
            timeout_ms: None,
            generation: GenerationOptions::default(),
            trace: None,
        }
    }
}

/// An entry of `_warnings`.
#[derive(Clone, Debug, PartialEq)]
pub struct Warning {
    pub code: Code,
    pub message: String,
    pub extra: Map<String, Value>,
}

impl Warning {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            extra: Map::new(),
        }
    }

    pub fn to_value(&self) -> Value {
        let mut value = json!({"code": self.code.as_str(), "message": self.message});
        if let Value::Object(map) = &mut value {
            map.extend(self.extra.clone());
        }
        value
    }
}

/// `_warnings`, if there are any.
pub(crate) fn warnings_annotation(warnings: &[Warning]) -> Map<String, Value> {
    let mut annotations = Map::new();
    if !warnings.is_empty() {
        let warnings = warnings.iter().map(Warning::to_value).collect();
        annotations.insert(String::from("_warnings"), Value::Array(warnings));
    }
    annotations
}

/// The request as stored in the journal: sufficient for a rerun, with the module resolved by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredCommand {
    pub(crate) input: Map<String, Value>,
    pub(crate) mode: RunMode,
    #[serde(default)]
    pub(crate) options: RunOptions,
    /// The only models that may answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) models: Option<Vec<String>>,
    /// The client may resume the run even in synchronous mode.
    #[serde(default)]
    pub(crate) resumable: bool,
}

impl StoredCommand {
    /// Whether a client may wait for the result of a rerun.
    pub(crate) fn can_rerun(&self) -> bool {
        self.mode == RunMode::Stream || self.resumable
    }
}
