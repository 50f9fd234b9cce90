//! The little language of compositions: paths (`$.a.b[0]`, `$.issues[*].risk`) and conditions
//! (`$.triage.meta.confidence > 0.8 && exists($.triage.data)`). Parsing into trees is total and bounded
//! in depth; running them never fails. What the names mean is the business of whoever composes modules.

mod condition;
mod evaluate;
mod path;
mod scanner;

#[cfg(test)]
mod tests;

use std::fmt;

pub use condition::{Comparison, Condition, Operand, parse_condition};
pub use evaluate::{Variables, select};
pub use path::{Path, PathSegment, parse_path};

/// Why a text is no expression, and the byte at which that shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    pub at: usize,
    pub message: String,
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at character {})", self.message, self.at + 1)
    }
}

impl std::error::Error for ExpressionError {}
