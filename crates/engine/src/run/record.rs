//! What is kept about every call of a run: who was asked, how long it took, what it used and how it ended.
//! Envelopes stay lean; this is for traces, metrics and bills.

use std::collections::BTreeMap;

use ir::{Error, ErrorKind, Operation, RunId, TraceContext, Usage};
use serde::Serialize;

use crate::port::AttemptUsage;
use crate::route::Selected;

/// A run's way through the fleet. The seed and the turn are enough to plan it again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trace {
    pub run: RunId,
    pub module: String,
    /// What was asked of the back-ends; for a request without a module also the model that it named.
    #[serde(skip)]
    pub operation: Operation,
    #[serde(skip)]
    pub requested_model: Option<String>,
    pub policy: Option<&'static str>,
    pub seed: u64,
    pub turn: u64,
    /// Who was to be asked, first one first; left out where there are too many to tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Vec<Selected>>,
    /// Who was not to be asked, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<BTreeMap<String, String>>,
    /// The caller's place in a trace of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<TraceContext>,
    /// How the run failed; `None` for a good end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// In the order in which they began.
    pub attempts: Vec<AttemptRecord>,
}

impl Trace {
    /// The run's own place in its caller's trace, or in one of its own.
    pub fn context(&self) -> Option<TraceContext> {
        context(self.run, self.parent)
    }
}

/// Whoever knows the run knows its span: nothing needs to be kept.
pub(crate) fn context(run: RunId, parent: Option<TraceContext>) -> Option<TraceContext> {
    match parent {
        Some(parent) => Some(parent.child(run.seed())),
        None => TraceContext::new(run.number(), run.seed(), true),
    }
}

/// One call of one back-end. Times are milliseconds of the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AttemptRecord {
    /// Counts from 1, within its run or step.
    pub number: u32,
    /// The step of a composition that it was made for; `outer/inner` where steps have steps.
    pub step: Option<String>,
    pub backend: String,
    pub kind: String,
    /// Which of the back-end's keys.
    pub key: u32,
    /// The model that said it answers, else the one the back-end is bound to, else the one that was asked for.
    pub model: Option<String>,
    pub role: AttemptRole,
    /// Why it was made, where another came before it.
    pub reason: Option<String>,
    pub started_ms: u64,
    /// From its start to its end.
    pub latency_ms: u64,
    /// From its start to the first token.
    pub first_token_ms: Option<u64>,
    /// As the back-end says at the end of its answer; unknown is null.
    pub usage: Option<Usage>,
    /// What a call that did not end by itself has probably used. Marked as an estimate, never added to usage.
    pub estimate: Option<Usage>,
    pub outcome: AttemptOutcome,
    pub error: Option<AttemptError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptRole {
    First,
    /// To another back-end, because one failed.
    Failover,
    /// Back to one that failed.
    Retry,
    /// Beside one that is slow.
    Hedge,
    /// For a better answer than the one before.
    Reask,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    /// It gave a whole answer.
    Won,
    Failed,
    /// Nobody wanted the answer any more.
    Cancelled,
    /// Another one was faster.
    HedgeLost,
}

impl AttemptOutcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Won => "won",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::HedgeLost => "hedge_lost",
        }
    }
}

impl AttemptRecord {
    /// What goes into the accounts.
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

/// The error of a call as it is recorded.
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
