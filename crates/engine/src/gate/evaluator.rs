//! The gate as a reply policy: decides after every complete answer of a run whether to accept it, to reask,
//! or to require a review.

use std::sync::Arc;

use module::Module;
use module::envelope::Envelope;
use serde_json::{Value, json};

use super::rule::{GateAction, GateFailure, GateRule};
use super::{REVIEW_KEY, reask};
use crate::run::machine::{CompletedReply, Reask, ReaskTarget, ReplyDecision, ReplyPolicy};

/// Evaluates the gate of one module.
#[derive(Clone, Debug)]
pub struct GateEvaluator {
    module: Arc<Module>,
    rule: Option<GateRule>,
}

impl GateEvaluator {
    pub fn new(module: Arc<Module>, rule: Option<GateRule>) -> Self {
        Self { module, rule }
    }

    /// Reasks once after an invalid answer of any back-end. Not after a rerun: that would be a third call for
    /// the same answer.
    fn reask_invalid(&self, envelope: &Envelope, done: &CompletedReply<'_>) -> Option<ReplyDecision> {
        let error = envelope
            .error()
            .filter(|error| reask::is_repairable(&self.module, error))?;
        if done.reasks > 0 {
            return None;
        }
        let request = reask::request(done.request, done.reply, error)?;
        Some(ReplyDecision::Again(Reask {
            selection: ReaskTarget::Same,
            reason: format!("the answer violates the contract ({})", error.code),
            request: Some(request),
        }))
    }

    fn objections(&self, envelope: &Envelope) -> Vec<GateFailure> {
        let Some(rule) = &self.rule else {
            return Vec::new();
        };
        match envelope.error() {
            None => rule.evaluate(Some(envelope.meta.confidence), Some(envelope.meta.risk_level())),
            // The gate of the tier rejected the answer; that of a stronger model may pass.
            Some(error) => {
                let reason = error.details.as_ref().and_then(|details| details.get("reason"));
                let gated = matches!(
                    reason.and_then(Value::as_str),
                    Some("low_confidence" | "risk_too_high")
                );
                let failed = gated.then(|| GateFailure::Failed {
                    code: error.code.clone(),
                });
                failed.into_iter().collect()
            }
        }
    }
}

impl ReplyPolicy for GateEvaluator {
    fn evaluate(&self, envelope: &mut Envelope, done: &CompletedReply<'_>) -> ReplyDecision {
        if let Some(next) = self.reask_invalid(envelope, done) {
            return next;
        }
        let objections = self.objections(envelope);
        if objections.is_empty() {
            return ReplyDecision::End;
        }
        let reasons: Vec<String> = objections.iter().map(ToString::to_string).collect();
        // Annotated in any case: if the rerun yields no answer, this one is used.
        let review = json!({"needed": true, "reasons": reasons});
        envelope.annotations.insert(String::from(REVIEW_KEY), review);
        let Some(GateRule {
            action: GateAction::Rerun { backend },
            ..
        }) = &self.rule
        else {
            return ReplyDecision::End;
        };
        let already_called = done.attempts.iter().any(|attempt| attempt.backend == *backend);
        if already_called || done.attempts.is_empty() {
            return ReplyDecision::End;
        }
        ReplyDecision::Again(Reask {
            selection: ReaskTarget::Named(backend.clone()),
            reason: reasons.join("; "),
            request: None,
        })
    }
}
