//! The reply policy: decides after a complete answer whether to accept it or to reask. The machine depends on
//! this trait only; gates and reasks implement it.

use std::fmt;
use std::sync::Arc;

use ir::Request;
use module::envelope::Envelope;

use crate::run::record::AttemptRecord;

/// A complete answer and its context.
#[derive(Debug)]
pub struct CompletedReply<'a> {
    /// The request that was sent.
    pub request: &'a Arc<Request>,
    /// The unmodified text of the answer.
    pub reply: &'a str,
    /// All attempts of the run; the last one gave the answer.
    pub attempts: &'a [AttemptRecord],
    /// Number of earlier answers that were not accepted.
    pub reasks: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ReplyDecision {
    /// Accept the envelope.
    End,
    Again(Reask),
}

/// Reask. If no back-end is available or none answers, the current envelope is the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Reask {
    pub selection: ReaskTarget,
    /// For the trace and for progress events.
    pub reason: String,
    /// Replaces the previous request if set.
    pub request: Option<Arc<Request>>,
}

/// Which back-end is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReaskTarget {
    /// Any back-end, chosen by the routing policy.
    Any,
    /// The same instance if it is available, else any.
    Same,
    /// Only this back-end.
    Named(String),
}

pub trait ReplyPolicy: Send + Sync + fmt::Debug {
    /// May annotate the envelope. The machine limits the number of reasks.
    fn evaluate(&self, envelope: &mut Envelope, done: &CompletedReply<'_>) -> ReplyDecision;
}

/// Accepts every answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct AcceptAll;

impl ReplyPolicy for AcceptAll {
    fn evaluate(&self, _: &mut Envelope, _: &CompletedReply<'_>) -> ReplyDecision {
        ReplyDecision::End
    }
}
