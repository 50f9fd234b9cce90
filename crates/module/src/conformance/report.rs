//! Results of a suite. Serialises to the output of `cogn conformance --json`.

use serde::Serialize;

use super::vector::LEVELS;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Passed,
    Failed,
    /// Recognised, but not supported by this runner.
    NotRun,
}

/// The result of one vector.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VectorResult {
    pub path: String,
    pub name: String,
    pub level: u8,
    pub kind: String,
    pub expects: &'static str,
    pub outcome: Outcome,
    /// Codes of the faults found in the subject.
    pub codes: Vec<String>,
    /// Why it failed or was not run; for a passed rejection, the fault of the subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A fault of the vector itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VectorProblem {
    pub path: String,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LevelCount {
    pub level: u8,
    pub passed: usize,
    pub failed: usize,
    pub not_run: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ConformanceReport {
    /// The highest level that the vectors prove; 0 if not even the first.
    pub declares_level: u8,
    pub levels: Vec<LevelCount>,
    pub vectors: Vec<VectorResult>,
    pub problems: Vec<VectorProblem>,
    /// JSON files without `$test`, which are not vectors.
    pub ignored: Vec<String>,
}

impl ConformanceReport {
    pub(super) fn finish(mut self) -> Self {
        self.levels = LEVELS.map(|level| self.count(level)).collect();
        self.levels.retain(|level| level.total() > 0);
        self.declares_level = self
            .levels
            .iter()
            .take_while(|level| level.failed == 0 && level.not_run == 0)
            .map(|level| level.level)
            .last()
            .unwrap_or(0);
        self
    }

    fn count(&self, level: u8) -> LevelCount {
        let count = |outcome| {
            let rows = self.vectors.iter().filter(|row| row.level == level);
            rows.filter(|row| row.outcome == outcome).count()
        };
        LevelCount {
            level,
            passed: count(Outcome::Passed),
            failed: count(Outcome::Failed),
            not_run: count(Outcome::NotRun),
        }
    }

    /// No vector failed and none is malformed.
    pub fn is_good(&self) -> bool {
        self.problems.is_empty() && self.levels.iter().all(|level| level.failed == 0)
    }
}

impl LevelCount {
    pub fn total(&self) -> usize {
        self.passed + self.failed + self.not_run
    }
}
