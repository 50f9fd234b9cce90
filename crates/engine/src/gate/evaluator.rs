//! The question behind every whole answer of a run: does it stand, is it asked for again, does a person
//! have to look at it?

use std::sync::Arc;

use module::Module;
use module::envelope::Envelope;
use serde_json::{Value, json};

use super::rule::{GateAction, GateFailure, GateRule};
use super::{REVIEW_KEY, reask};
use crate::run::machine::{Reask, CompletedReply, ReplyPolicy, ReplyDecision, ReaskTarget};

/// Keeps the gate of one module.
#[derive(Clone, Debug)]
pub struct GateEvaluator {
    module: Arc<Module>,
    rule: Option<GateRule>,
}

impl GateEvaluator {
    pub fn new(module: Arc<Module>, rule: Option<GateRule>) -> Self {
        Self { module, rule }
    }

    /// A broken answer is asked for once more, whoever gave it. Not behind a second opinion: that would be
    /// a third call for the same thing.
    fn ask_to_mend(&self, envelope: &Envelope, done: &CompletedReply<'_>) -> Option<ReplyDecision> {
        let error = envelope
            .error()
            .filter(|error| reask::is_repairable(&self.module, error))?;
        if done.reasks > 0 {
            return None;
        }
        let request = reask::request(done.request, done.reply, error)?;
        Some(ReplyDecision::Again(Reask {
            selection: ReaskTarget::Same,
            reason: format!("the answer broke the contract ({})", error.code),
            request: Some(request),
        }))
    }

    fn objections(&self, envelope: &Envelope) -> Vec<GateFailure> {
        let Some(rule) = &self.rule else {
            return Vec::new();
        };
        match envelope.error() {
            None => rule.evaluate(Some(envelope.meta.confidence), Some(envelope.meta.risk_level())),
            // The tier's own gate said no, which a stronger model may mend.
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
        if let Some(next) = self.ask_to_mend(envelope, done) {
            return next;
        }
        let objections = self.objections(envelope);
        if objections.is_empty() {
            return ReplyDecision::End;
        }
        let reasons: Vec<String> = objections.iter().map(ToString::to_string).collect();
        // Marked in any case: if the second opinion cannot be had, this answer stands.
        let review = json!({"needed": true, "reasons": reasons});
        envelope.annotations.insert(String::from(REVIEW_KEY), review);
        let Some(GateRule {
            action: GateAction::Rerun { backend },
            ..
        }) = &self.rule
        else {
            return ReplyDecision::End;
        };
        let asked_already = done.attempts.iter().any(|attempt| attempt.backend == *backend);
        if asked_already || done.attempts.is_empty() {
            return ReplyDecision::End;
        }
        ReplyDecision::Again(Reask {
            selection: ReaskTarget::Named(backend.clone()),
            reason: reasons.join("; "),
            request: None,
        })
    }
}
