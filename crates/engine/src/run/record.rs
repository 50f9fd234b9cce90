//! Records of the attempts of a run: back-end, duration, usage and outcome. They are used for traces, metrics
//! and billing; envelopes do not contain them.

use std::collections::BTreeMap;

use ir::{Error, ErrorKind, Operation, RunId, TraceContext, Usage};
use serde::Serialize;

use crate::port::AttemptUsage;
use crate::route::Selected;

/// The attempts of a run and their routing. Seed and turn are sufficient to reproduce the route plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trace {
    pub run: RunId,
    pub module: String,
    /// The operation; for a relayed call `asked_model` is the model that the request named.
    #[serde(skip)]
    pub operation: Operation,
    #[serde(skip)]
    pub requested_model: Option<String>,
    pub policy: Option<&'static str>,
    pub seed: u64,
    pub turn: u64,
    /// Selected back-ends in order; omitted for large fleets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Vec<Selected>>,
    /// Rejected back-ends, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<BTreeMap<String, String>>,
    /// The caller's trace context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<TraceContext>,
    /// The error code; `None` on success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// In start order.
    pub attempts: Vec<AttemptRecord>,
}

impl Trace {
    /// The span of the run, in the caller's trace or in a new one.
    pub fn context(&self) -> Option<TraceContext> {
        context(self.run, self.parent)
    }
}

/// The span is derived from the run id, so it is not stored.
pub(crate) fn context(run: RunId, parent: Option<TraceContext>) -> Option<TraceContext> {
    match parent {
        Some(parent) => Some(parent.child(run.seed())),
        None => TraceContext::new(run.number(), run.seed(), true),
    }
}

/// One attempt. Times are milliseconds; `started_ms` counts from the start of the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AttemptRecord {
    /// Counts from 1, within its run or step.
    pub number: u32,
    /// The step of a composition that it was made for; `outer/inner` where steps have steps.
    pub step: Option<String>,
    pub backend: String,
    pub kind: String,
    /// Index of the back-end's key.
    pub key: u32,
    /// The model named in the response, else the one the back-end is bound to, else the requested one.
    pub model: Option<String>,
    pub role: AttemptRole,
    /// Why it was made; `None` for the first attempt.
    pub reason: Option<String>,
    pub started_ms: u64,
    /// From its start to its end.
    pub latency_ms: u64,
    /// From its start to the first token.
    pub first_token_ms: Option<u64>,
    /// As reported at the end of the answer; unknown is null.
    pub usage: Option<Usage>,
    /// Estimated usage of an attempt that did not complete. Marked as an estimate, never added to usage.
    pub estimate: Option<Usage>,
    pub outcome: AttemptOutcome,
    pub error: Option<AttemptError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptRole {
    First,
    /// On another back-end, after a failure.
    Failover,
    /// On a back-end that failed before.
    Retry,
    /// Concurrent with a slow attempt.
    Hedge,
    /// After a complete answer that was not accepted.
    Reask,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    /// The answer is complete.
    Succeeded,
    Failed,
    /// The answer was no longer needed.
    Cancelled,
    /// Another attempt was faster.
    HedgeLost,
}

impl AttemptOutcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::HedgeLost => "hedge_lost",
        }
    }
}

impl AttemptRecord {
    /// The usage record of the attempt.
    pub(crate) fn usage_row(&self) -> AttemptUsage {
        let usage = self.usage.as_ref();
        AttemptUsage {
            attempt: self.number,
            backend: Some(self.backend.clone()),
            model: self.model.clone(),
            outcome: String::from(self.outcome.as_str()),
            input_tokens: usage.and_then(|usage| usage.input_tokens),
            output_tokens: usage.and_then(|usage| usage.output_tokens),
            estimated_tokens: self.estimate.as_ref().and_then(Usage::total_tokens),
        }
    }
}

/// The recorded error of an attempt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AttemptError {
    pub code: &'static str,
    pub kind: ErrorKind,
    pub status: Option<u16>,
    pub message: String,
}

impl From<&Error> for AttemptError {
    fn from(error: &Error) -> Self {
        Self {
            code: error.cognitive_code(),
            kind: error.kind,
            status: error.status,
            message: error.message.clone(),
        }
    }
}
