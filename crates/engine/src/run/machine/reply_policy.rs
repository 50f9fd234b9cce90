//! What happens behind an answer that was given in full: it stands, or it is asked for again. The machine
//! knows only this question; gates and second questions are answers to it.

use std::fmt;
use std::sync::Arc;

use ir::Request;
use module::envelope::Envelope;

use crate::run::record::AttemptRecord;

/// What is known when an answer is complete.
#[derive(Debug)]
pub struct CompletedReply<'a> {
    /// What was asked.
    pub request: &'a Arc<Request>,
    /// The answer, word for word.
    pub reply: &'a str,
    /// The call that gave it, last of all that were made.
    pub attempts: &'a [AttemptRecord],
    /// How many answers were thrown away before this one.
    pub reasks: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ReplyDecision {
    /// The envelope stands as it is.
    End,
    Again(Reask),
}

/// Ask once more. If nobody can be asked, or nobody can answer, the envelope at hand stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Reask {
    pub selection: ReaskTarget,
    /// For the trace and for those who watch.
    pub reason: String,
    /// Another request in place of the one before.
    pub request: Option<Arc<Request>>,
}

/// Who is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReaskTarget {
    /// Whoever the policy chooses.
    Any,
    /// The same instance, if it can be called; else any.
    Same,
    /// This back-end and no other.
    Named(String),
}

pub trait ReplyPolicy: Send + Sync + fmt::Debug {
    /// May mark the envelope. The machine never asks for more than a few answers, whatever is said here.
    fn evaluate(&self, envelope: &mut Envelope, done: &CompletedReply<'_>) -> ReplyDecision;
}

/// Takes every answer as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct AcceptAll;

impl ReplyPolicy for AcceptAll {
    fn evaluate(&self, _: &mut Envelope, _: &CompletedReply<'_>) -> ReplyDecision {
        ReplyDecision::End
    }
}
