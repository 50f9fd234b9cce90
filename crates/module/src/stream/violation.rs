//! A violation in a chunk or in a sequence of chunks. A bad chunk is recorded as a violation; folding
//! continues.

use std::fmt;

use crate::code::Code;
use crate::diagnostic::Severity;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub code: Code,
    pub severity: Severity,
    /// Line of the recording, from 1; `None` outside a recording.
    pub line: Option<usize>,
    /// Pointer into the chunk (`/chunk/seq`), empty for the chunk as a whole.
    pub pointer: String,
    pub message: String,
}

impl Violation {
    pub(super) fn error(code: Code, pointer: &str, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            line: None,
            pointer: String::from(pointer),
            message: message.into(),
        }
    }

    pub(super) fn warning(code: Code, pointer: &str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(code, pointer, message)
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        write!(f, "{}: {}", self.code, self.message)?;
        if !self.pointer.is_empty() {
            write!(f, " (at {})", self.pointer)?;
        }
        Ok(())
    }
}

impl std::error::Error for Violation {}
