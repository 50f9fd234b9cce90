//! Results of the checks. Serialises to the output of `cogn conformance --url ... --json`.

use serde::Serialize;

use super::check::{Check, CheckEnd};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerOutcome {
    Passed,
    Failed,
    Skipped,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckRow {
    pub name: &'static str,
    pub rule: &'static str,
    /// `must` or `should`.
    pub requires: &'static str,
    pub level: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    pub outcome: ServerOutcome,
    /// Why it failed or was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Skipped because the specification makes it optional; does not affect `proven`.
    #[serde(skip)]
    excused: bool,
}

impl CheckRow {
    /// The result of a check; without a `stop`, it passed.
    pub fn new(check: &Check, module: Option<&str>, stop: Option<CheckEnd>) -> Self {
        let excused = matches!(stop, Some(CheckEnd::NotApplicable(_)));
        let (outcome, reason) = match stop {
            None => (ServerOutcome::Passed, None),
            Some(CheckEnd::Failed(reason)) => (ServerOutcome::Failed, Some(reason)),
            Some(CheckEnd::Skipped(reason) | CheckEnd::NotApplicable(reason)) => {
                (ServerOutcome::Skipped, Some(reason))
            }
        };
        Self {
            name: check.name,
            rule: check.rule,
            requires: if check.must { "must" } else { "should" },
            level: check.level,
            module: module.map(String::from),
            outcome,
            reason,
            excused,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServerReport {
    pub url: String,
    pub level: u8,
    /// Every `must` check passed or did not apply.
    pub proven: bool,
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
    pub checks: Vec<CheckRow>,
}

impl ServerReport {
    pub fn new(url: String, level: u8, checks: Vec<CheckRow>) -> Self {
        let count = |outcome| checks.iter().filter(|row| row.outcome == outcome).count();
        let musts = checks.iter().filter(|row| row.requires == "must");
        let mut proving = musts.map(|row| row.outcome == ServerOutcome::Passed || row.excused);
        Self {
            url,
            level,
            proven: !checks.is_empty() && proving.all(|passed| passed),
            passed: count(ServerOutcome::Passed),
            failed: count(ServerOutcome::Failed),
            skipped: count(ServerOutcome::Skipped),
            checks,
        }
    }
}
