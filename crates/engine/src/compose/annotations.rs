//! Warnings and review reasons in the envelopes of steps: they are passed on to the envelope of the composed
//! run, with the name of the step.

use serde_json::{Map, Value};

use crate::gate::REVIEW_KEY;
use crate::limits;

const WARNINGS_KEY: &str = "_warnings";

#[derive(Clone, Debug, Default)]
pub(super) struct StepAnnotations {
    /// Entries of `_warnings`.
    pub(super) warnings: Vec<Value>,
    /// The reasons for a review of the answer of a step.
    pub(super) review: Vec<String>,
}

impl StepAnnotations {
    /// Moves them out of the envelope of a step.
    pub(super) fn extract(&mut self, step: &str, envelope: &mut Map<String, Value>) {
        let warnings = envelope.shift_remove(WARNINGS_KEY);
        for warning in warnings.as_ref().and_then(Value::as_array).into_iter().flatten() {
            if self.warnings.len() < limits::STEP_WARNINGS_MAX {
                self.warnings.push(of_step(step, warning.clone()));
            }
        }
        let review = envelope.shift_remove(REVIEW_KEY).unwrap_or_default();
        let reasons = review.get("reasons").and_then(Value::as_array);
        for reason in reasons.into_iter().flatten().filter_map(Value::as_str) {
            if self.review.len() < limits::STEP_REASONS_MAX {
                self.review.push(format!("step {step}: {reason}"));
            }
        }
    }
}

/// A nested step is named by its path.
fn of_step(step: &str, mut warning: Value) -> Value {
    if let Value::Object(map) = &mut warning {
        let place = match map.get("step").and_then(Value::as_str) {
            Some(inner) => format!("{step}/{inner}"),
            None => String::from(step),
        };
        map.insert(String::from("step"), place.into());
    }
    warning
}
