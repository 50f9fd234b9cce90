//! What is wrong with a module, where, and what to do about it. A check never stops at the first
//! problem: it adds to a list of these. Each is self-contained (it carries its line of source), so that
//! it can be rendered long after the file is gone. Rendering is not done here.

mod suggestion;
mod report;
mod rule;
mod source;

use serde::Serialize;

pub use suggestion::{distance, nearest};
pub use report::Report;
pub use rule::Rule;
pub use source::{Location, Source};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Works, but is likely not what was meant, or will stop working.
    Warning,
    /// Breaks the contract of the format.
    Error,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One problem. The message says what is wrong with what; the hint says how to mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub rule: Rule,
    pub severity: Severity,
    pub message: String,
    pub location: Option<Location>,
    pub hint: Option<String>,
}

impl Diagnostic {
    /// A diagnostic with the rule's own severity and no place yet.
    pub fn new(rule: Rule, message: impl Into<String>) -> Self {
        Self {
            rule,
            severity: rule.severity(),
            message: message.into(),
            location: None,
            hint: None,
        }
    }

    #[must_use]
    pub fn at(mut self, location: Location) -> Self {
        self.location = Some(location);
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }
}
