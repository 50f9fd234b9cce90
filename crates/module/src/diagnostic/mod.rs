//! Diagnostics of a module: problem, position and hint. A check does not stop at the first problem but adds
//! to a list. Each diagnostic contains its source line, so that it can be rendered without the file.
//! Rendering is not done here.

mod report;
mod rule;
mod source;
mod suggestion;

use serde::Serialize;

pub use report::Report;
pub use rule::Rule;
pub use source::{Location, Source};
pub use suggestion::{nearest, similar};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Informational.
    Note,
    /// Works, but is probably not intended, or will stop working.
    Warning,
    /// Violates the contract of the format.
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

/// One problem. The message states the problem; the hint states how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub rule: Rule,
    pub severity: Severity,
    pub message: String,
    pub location: Option<Location>,
    pub hint: Option<String>,
}

impl Diagnostic {
    /// A diagnostic with the rule's own severity and without a location.
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
