//! Warnings that a back-end sends during its answer, collected for the envelope: each one once, with a code
//! of this project, and up to a maximum number. Warnings of discarded answers are dropped.

use ir::event::Warning as BackendWarning;
use module::Code;
use serde_json::{Map, Value};

use crate::limits;
use crate::run::command::{Warning, warnings_annotation};

/// The warnings of one attempt.
#[derive(Clone, Debug, Default)]
pub(super) struct BackendWarnings {
    kept: Vec<BackendWarning>,
    /// Number of warnings above the maximum.
    omitted: u64,
}

impl BackendWarnings {
    pub(super) fn add(&mut self, mut source: BackendWarning) {
        let end = source
            .message
            .floor_char_boundary(limits::BACKEND_WARNING_BYTES_MAX);
        if end < source.message.len() {
            source.message.truncate(end);
            source.message.push_str("...");
        }
        if self.kept.contains(&source) {
            return;
        }
        if self.kept.len() < limits::BACKEND_WARNINGS_MAX {
            self.kept.push(source);
        } else {
            self.omitted += 1;
        }
    }

    /// As `_warnings`, if there are any.
    pub(super) fn annotations(&self) -> Map<String, Value> {
        let mut warnings: Vec<Warning> = self.kept.iter().map(warning).collect();
        if self.omitted > 0 {
            let message = format!("{} more warnings from the back-end", self.omitted);
            let mut rest = Warning::new(Code::W4001, message);
            rest.extra.insert(String::from("omitted"), self.omitted.into());
            warnings.push(rest);
        }
        warnings_annotation(&warnings)
    }
}

fn warning(source: &BackendWarning) -> Warning {
    let code = match source.code.as_str() {
        ir::event::SHORTENED => Code::W2003,
        _ => Code::W4001,
    };
    let mut warning = Warning::new(code, source.message.clone());
    if code == Code::W4001 {
        let reason = Value::from(source.code.as_str());
        warning.extra.insert(String::from("reason"), reason);
    }
    warning
}
