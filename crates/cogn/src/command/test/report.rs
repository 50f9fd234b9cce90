//! The results of all tests: by module, as counts, and compared with the thresholds.

use std::path::PathBuf;

use module::Module;
use module::golden::{Coverage, Mismatch};
use serde_json::{Value, json};

use super::case::{Outcome, Status};
use crate::modules::Found;

pub(super) struct ModuleReport {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) coverage: Coverage,
    /// Input files of pairs that are not run, because the manifest does not list them.
    pub(super) unlisted: Vec<String>,
    /// Why the module could not be loaded.
    pub(super) broken: Option<String>,
}

impl ModuleReport {
    pub(super) fn new(found: &Found, module: &Module, unlisted: Vec<String>) -> Self {
        Self {
            name: String::from(module.name()),
            path: found.path.clone(),
            outcomes: Vec::new(),
            coverage: Coverage::of(module),
            unlisted,
            broken: None,
        }
    }

    pub(super) fn broken(found: &Found, error: &anyhow::Error) -> Self {
        Self {
            name: found.name.clone(),
            path: found.path.clone(),
            outcomes: Vec::new(),
            coverage: Coverage::default(),
            unlisted: Vec::new(),
            broken: Some(format!("{error:#}")),
        }
    }

    pub(super) fn add(&mut self, outcome: Outcome) {
        let data = outcome
            .envelope
            .as_ref()
            .and_then(|envelope| envelope.get("data"));
        if let Some(data) = data {
            self.coverage.exercise(data);
        }
        self.outcomes.push(outcome);
    }

    fn to_value(&self) -> Value {
        json!({
            "name": self.name,
            "path": self.path.display().to_string(),
            "error": self.broken,
            "unlisted": self.unlisted,
            "cases": self.outcomes.iter().map(Outcome::to_value).collect::<Vec<_>>(),
            "coverage": {
                "fields": self.coverage.total(),
                "exercised": self.coverage.exercised(),
                "percent": rounded(self.coverage.percent()),
                "missing": self.coverage.missing().collect::<Vec<_>>(),
            },
        })
    }
}

impl Status {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "failed",
            Self::Stale(_) => "stale",
            Self::Unrecorded => "unrecorded",
            Self::Broken(_) => "broken",
        }
    }
}

impl Outcome {
    fn to_value(&self) -> Value {
        let (problems, detail) = match &self.status {
            Status::Failed(found) => (found.iter().map(Mismatch::to_value).collect(), None),
            Status::Stale(text) | Status::Broken(text) => (Vec::new(), Some(text)),
            Status::Passed | Status::Unrecorded => (Vec::new(), None),
        };
        json!({
            "name": self.name,
            "status": self.status.word(),
            "problems": problems,
            "detail": detail,
            "elapsed_ms": self.elapsed_ms,
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Thresholds {
    pub(super) pass_percent: f64,
    pub(super) coverage_percent: f64,
}

pub(super) struct TestReport {
    pub(super) modules: Vec<ModuleReport>,
    pub(super) thresholds: Thresholds,
}

impl TestReport {
    pub(super) fn new(modules: Vec<ModuleReport>, thresholds: Thresholds) -> Self {
        Self { modules, thresholds }
    }

    pub(super) fn count(&self, word: &str) -> usize {
        let outcomes = self.modules.iter().flat_map(|module| &module.outcomes);
        outcomes.filter(|outcome| outcome.status.word() == word).count()
    }

    pub(super) fn total(&self) -> usize {
        self.modules.iter().map(|module| module.outcomes.len()).sum()
    }

    fn pass_percent(&self) -> f64 {
        match self.total() {
            0 => 0.0,
            total => 100.0 * self.count("passed") as f64 / total as f64,
        }
    }

    /// Modules whose coverage is below the threshold.
    pub(super) fn below_threshold(&self) -> impl Iterator<Item = &ModuleReport> {
        let least = self.thresholds.coverage_percent;
        let tested = self.modules.iter().filter(|module| module.broken.is_none());
        tested.filter(move |module| module.coverage.percent() < least)
    }

    /// False if a threshold is not met or a module does not load.
    pub(super) fn is_good(&self) -> bool {
        self.pass_percent() >= self.thresholds.pass_percent
            && self.modules.iter().all(|module| module.broken.is_none())
            && self.below_threshold().next().is_none()
    }

    pub(super) fn to_value(&self) -> Value {
        json!({
            "ok": self.is_good(),
            "summary": {
                "modules": self.modules.len(),
                "cases": self.total(),
                "passed": self.count("passed"),
                "failed": self.count("failed"),
                "stale": self.count("stale"),
                "unrecorded": self.count("unrecorded"),
                "broken": self.count("broken"),
                "pass_percent": rounded(self.pass_percent()),
            },
            "thresholds": {
                "pass_percent": self.thresholds.pass_percent,
                "coverage_percent": self.thresholds.coverage_percent,
            },
            "modules": self.modules.iter().map(ModuleReport::to_value).collect::<Vec<_>>(),
        })
    }
}

fn rounded(percent: f64) -> f64 {
    (percent * 10.0).round() / 10.0
}
