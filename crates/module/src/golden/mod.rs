//! Golden tests: parses what a test expects, in any of the three notations, compares an envelope with it, and
//! measures which fields of the data schema the tests of a module cover. `check::golden` reports the problems
//! of an expectation; it has no parser.

mod coverage;
mod expectation;
mod matcher;
mod path;
mod rules;
mod subset;
#[cfg(test)]
mod tests;

pub use crate::load::unlisted_tests;
pub use coverage::Coverage;
pub(crate) use expectation::{Described, Expectation, ExpectedAnswer};
pub use matcher::compare_answer;

use serde_json::{Value, json};

/// A difference between the answer and the expectation.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// JSON pointer into the envelope.
    pub pointer: String,
    pub message: String,
    pub expected: Option<Value>,
    pub actual: Option<Value>,
}

impl Mismatch {
    fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            message: message.into(),
            expected: None,
            actual: None,
        }
    }

    fn values(mut self, expected: Option<&Value>, actual: Option<&Value>) -> Self {
        self.expected = expected.cloned();
        self.actual = actual.cloned();
        self
    }

    pub fn to_value(&self) -> Value {
        json!({
            "pointer": self.pointer,
            "message": self.message,
            "expected": self.expected,
            "actual": self.actual,
        })
    }
}
