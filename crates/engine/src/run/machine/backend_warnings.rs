//! What a back-end warns of while it answers, kept for those who get the answer: each remark once, with a
//! code of ours, and no more of them than anyone would read. Whoever gave an answer that was thrown away is
//! not quoted.

use ir::event::Warning as Remark;
use module::Code;
use serde_json::{Map, Value};

use crate::limits;
use crate::run::command::{Warning, warnings_annotation};

/// The remarks of one attempt.
#[derive(Clone, Debug, Default)]
pub(super) struct BackendWarnings {
    kept: Vec<Remark>,
    /// How many came when there was no more room.
    omitted: u64,
}

impl BackendWarnings {
    pub(super) fn add(&mut self, mut remark: Remark) {
        let end = remark.message.floor_char_boundary(limits::BACKEND_WARNING_BYTES_MAX);
        if end < remark.message.len() {
            remark.message.truncate(end);
            remark.message.push_str("...");
        }
        if self.kept.contains(&remark) {
            return;
        }
        if self.kept.len() < limits::BACKEND_WARNINGS_MAX {
            self.kept.push(remark);
        } else {
            self.omitted += 1;
        }
    }

    /// As `_warnings`, if there is anything to tell.
    pub(super) fn annotations(&self) -> Map<String, Value> {
        let mut warnings: Vec<Warning> = self.kept.iter().map(warning).collect();
        if self.omitted > 0 {
            let message = format!("the back-end made {} more remarks", self.omitted);
            let mut rest = Warning::new(Code::W4001, message);
            rest.extra.insert(String::from("untold"), self.omitted.into());
            warnings.push(rest);
        }
        warnings_annotation(&warnings)
    }
}

fn warning(remark: &Remark) -> Warning {
    let code = match remark.code.as_str() {
        ir::event::SHORTENED => Code::W2003,
        _ => Code::W4001,
    };
    let mut warning = Warning::new(code, remark.message.clone());
    if code == Code::W4001 {
        let reason = Value::from(remark.code.as_str());
        warning.extra.insert(String::from("reason"), reason);
    }
    warning
}
