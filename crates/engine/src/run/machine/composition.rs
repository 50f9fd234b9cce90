//! The composition of a run, as the machine handles it: steps are reported as progress, and their outcome
//! becomes the request, the answer or the error of the run.

use module::compose::Outcome;
use module::context::EMITTED_KEY;
use module::envelope::{CheckOptions, Envelope, RuntimeMeta, check_object};
use serde_json::{Map, Value, json};

use super::reply_policy::CompletedReply;
use super::{Output, RunMachine};
use crate::compose::{CompositionEvent, CompositionResult};
use crate::gate::REVIEW_KEY;
use crate::run::failure;

/// Progress when all steps have ended, in percent.
const STEPS_PERCENT: usize = 90;

/// What the steps add to the terminal event of the run.
#[derive(Debug, Default)]
pub(super) struct StepSummary {
    usage: Vec<Value>,
    warnings: Vec<Value>,
    review: Vec<String>,
    emitted: Map<String, Value>,
}

impl RunMachine {
    pub(super) fn on_composition_event(
        &mut self,
        prepared: CompositionEvent,
        now_ms: u64,
        out: &mut Vec<Output>,
    ) {
        if !std::mem::replace(&mut self.preparing, false) {
            return;
        }
        match prepared {
            CompositionEvent::Step { ended, of, message } => {
                self.preparing = true;
                let percent = u8::try_from(ended * STEPS_PERCENT / of.max(1)).unwrap_or_default();
                self.percent = self.percent.max(percent);
                self.progress("step", message, out);
            }
            CompositionEvent::Done(composed) => self.on_steps_done(*composed, now_ms, out),
        }
    }

    fn on_steps_done(&mut self, composed: CompositionResult, now_ms: u64, out: &mut Vec<Output>) {
        self.calls.import_records(composed.attempts);
        self.step_summary = Some(Box::new(StepSummary {
            usage: composed.usage,
            warnings: composed.warnings,
            review: composed.review,
            emitted: composed.emitted,
        }));
        match composed.outcome {
            Outcome::Ask { .. } => {
                self.calls.restart(composed.request, None);
                self.begin(now_ms, out);
            }
            Outcome::Answer(object) => {
                let facts = RuntimeMeta {
                    processing_time_ms: Some(now_ms + self.plan.preface.took_ms),
                    ..RuntimeMeta::default()
                };
                let mut envelope = check_object(
                    &self.plan.module,
                    object,
                    &CheckOptions {
                        facts,
                        ..CheckOptions::default()
                    },
                );
                let done = CompletedReply {
                    request: self.calls.request(),
                    reply: "",
                    attempts: &[],
                    reasks: self.agains,
                };
                // An answer built from steps cannot be reasked; the gate may still annotate it.
                self.plan.reply_policy.evaluate(&mut envelope, &done);
                self.finish_with(envelope, None, out);
            }
            Outcome::Fail { error, partial_data } => {
                let partial = partial_data.filter(|_| self.plan.module.manifest.failure.partial_allowed);
                self.end(failure::failure(*error, partial), None, out);
            }
        }
    }

    /// Adds the usage, warnings, review reasons and emitted context of the steps to the envelope.
    pub(super) fn merge_step_summary(
        &mut self,
        envelope: &mut Envelope,
        usage: Option<Value>,
    ) -> Option<Value> {
        let Some(aside) = self.step_summary.take().map(|aside| *aside) else {
            return usage;
        };
        if !aside.warnings.is_empty() {
            let warnings = Map::from_iter([(String::from("_warnings"), Value::Array(aside.warnings))]);
            super::finish::add_warnings(&mut envelope.annotations, warnings);
        }
        if envelope.is_ok() && !aside.review.is_empty() {
            add_review(&mut envelope.annotations, aside.review);
        }
        if envelope.is_ok() && !aside.emitted.is_empty() {
            let mut emitted = aside.emitted;
            if let Some(Value::Object(own)) = envelope.annotations.shift_remove(EMITTED_KEY) {
                emitted.extend(own);
            }
            envelope
                .annotations
                .insert(String::from(EMITTED_KEY), Value::Object(emitted));
        }
        if aside.usage.is_empty() {
            return usage;
        }
        let own_calls = self.calls.records().iter().any(|record| record.step.is_none());
        let own = own_calls.then(|| usage.unwrap_or_default());
        Some(total(aside.usage.into_iter().chain(own)))
    }
}

/// A review that a step requires is required for the composed run.
fn add_review(annotations: &mut Map<String, Value>, reasons: Vec<String>) {
    let review = annotations
        .entry(REVIEW_KEY)
        .or_insert_with(|| json!({"needed": true, "reasons": []}));
    if let Some(Value::Array(known)) = review.get_mut("reasons") {
        known.extend(reasons.into_iter().map(Value::from));
    }
}

/// The sum of all parts; a count that is unknown in one part is unknown in the sum.
fn total(parts: impl IntoIterator<Item = Value>) -> Value {
    let parts: Vec<Value> = parts.into_iter().collect();
    let sum = |key: &str| -> Option<u64> {
        let counts = parts.iter().map(|part| part.get(key).and_then(Value::as_u64));
        counts.sum()
    };
    json!({
        "input_tokens": sum("input_tokens"),
        "output_tokens": sum("output_tokens"),
        "total_tokens": sum("total_tokens"),
    })
}
