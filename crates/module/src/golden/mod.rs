//! Golden tests: whether an envelope is what a test expects, in any of the three dialects that modules use,
//! and which fields of the data schema the tests of a module exercise. `check::golden` says whether a test
//! is well formed; here it is held against an answer.

mod coverage;
mod matcher;
mod path;
mod rules;
mod subset;
#[cfg(test)]
mod tests;

pub use coverage::Coverage;
pub use matcher::compare_answer;

use serde_json::{Value, json};

/// Where an answer is not what was expected.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// Into the envelope.
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
