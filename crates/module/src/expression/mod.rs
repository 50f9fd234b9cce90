//! The expression language of compositions: paths (`$.a.b[0]`, `$.issues[*].risk`) and conditions
//! (`$.triage.meta.confidence > 0.8 && exists($.triage.data)`). Parsing never panics and is bounded in depth;
//! evaluation never fails. This module must not know how names are resolved; see [`Variables`].

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

/// Why a text is not a valid expression, and the byte offset of the error.
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
