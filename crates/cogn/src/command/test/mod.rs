//! `cogn test`: the golden tests of modules, answered from recordings. Nobody is asked unless a recording is
//! to be made; a request that has changed since is a failure of its own kind.

mod case;
mod junit;
mod human_output;
mod report;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use futures::{StreamExt, stream};
use module::golden::Coverage;
use secrecy::SecretString;

use self::case::{Case, CaseSource};
use self::report::{ModuleReport, TestReport, Thresholds};
use crate::command_engine::{BackendArgs, CommandEngine};
use crate::atomic_file;
use crate::config;
use crate::exit::Exit;
use crate::modules::{Found, Library, Search};
use crate::output::{Output, hinted};
use crate::wiring;

/// Tests at a time, where nothing is said.
const JOBS: usize = 4;
const JOBS_MAX: usize = 64;

#[derive(Debug, Args)]
pub(crate) struct Test {
    /// The modules to test: names or paths of folders.
    #[arg(required_unless_present = "all")]
    module: Vec<String>,
    /// Test every module that can be found.
    #[arg(long, conflicts_with = "module")]
    all: bool,
    /// Ask the back-ends, and write their answers into tests/recordings of the module.
    #[arg(long)]
    record: bool,
    #[command(flatten)]
    asked: BackendArgs,
    /// Only tests whose name, as MODULE/TEST, contains this.
    #[arg(short = 'k', long = "filter", value_name = "TEXT")]
    filter: Option<String>,
    /// So many tests at a time.
    #[arg(short, long, value_name = "N", default_value_t = JOBS, value_parser = jobs)]
    jobs: usize,
    /// Write the results for a CI system into this file, as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Fail unless this share of the tests passes.
    #[arg(long, value_name = "PERCENT", default_value_t = 100.0, value_parser = percent)]
    min_pass: f64,
    /// Fail unless the answers show this share of the fields of each data schema.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    min_coverage: f64,
}

pub(crate) fn jobs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(jobs) if (1..=JOBS_MAX).contains(&jobs) => Ok(jobs),
        _ => Err(format!("a number from 1 to {JOBS_MAX} is wanted")),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err(String::from("a number from 0 to 100 is wanted")),
    }
}

/// The back-ends that are asked when a recording is made.
struct LiveBackends {
    asking: CommandEngine,
    secrets: Vec<SecretString>,
}

/// A report for each module, still empty, and the tests with the place of theirs.
struct Collected {
    reports: Vec<ModuleReport>,
    cases: Vec<(usize, Case)>,
}

impl Test {
    pub(crate) fn run(&self, search: &Search, output: &Output) -> Result<Exit> {
        let live = self.record.then(|| self.live()).transpose()?;
        let Collected { mut reports, cases } = self.collect(search, live.as_ref())?;
        if cases.is_empty() && reports.iter().all(|report| report.broken.is_none()) {
            let hint = match &self.filter {
                Some(filter) => format!("no test has `{filter}` in its name"),
                None => String::from("a test is a pair tests/NAME.input.json and tests/NAME.expected.json"),
            };
            return Err(hinted("there is no test to run", hint));
        }
        let running = stream::iter(cases)
            .map(|(place, case)| async move { (place, case.run().await) })
            .buffered(self.jobs);
        let done: Vec<_> = wiring::current_thread_runtime()?.block_on(running.collect());
        for (place, outcome) in done {
            if let Some(report) = reports.get_mut(place) {
                report.add(outcome);
            }
        }
        let thresholds = Thresholds {
            pass_percent: self.min_pass,
            coverage_percent: self.min_coverage,
        };
        let report = TestReport::new(reports, thresholds);
        if let Some(path) = &self.junit {
            atomic_file::write(path, junit::render(&report).as_bytes())?;
        }
        if output.json {
            output.json(&report.to_value())?;
        } else {
            human_output::print(&report, output)?;
        }
        Ok(if report.is_good() { Exit::Success } else { Exit::Failure })
    }

    fn live(&self) -> Result<LiveBackends> {
        Ok(LiveBackends {
            asking: CommandEngine::live(&self.asked)?,
            secrets: config::known_secrets(self.asked.config.as_deref())?,
        })
    }

    fn folders(&self, search: &Search) -> Result<Vec<Found>> {
        if self.all {
            let found = search.all()?.into_iter();
            return Ok(found.filter(|found| found.shadowed_by.is_none()).collect());
        }
        self.module.iter().map(|name| search.find(name)).collect()
    }

    fn collect(&self, search: &Search, live: Option<&LiveBackends>) -> Result<Collected> {
        let (mut reports, mut cases) = (Vec::new(), Vec::new());
        for found in self.folders(search)? {
            let module = match wiring::load_module(&found.path) {
                Ok(module) => Arc::new(module),
                Err(error) => {
                    reports.push(ModuleReport::broken(&found, &error));
                    continue;
                }
            };
            let modules = Library::around(search, &found.path).reachable(&module);
            let place = reports.len();
            let before = cases.len();
            for pair in &module.tests {
                let full = format!("{}/{}", module.name(), pair.name);
                if self.filter.as_ref().is_some_and(|filter| !full.contains(filter)) {
                    continue;
                }
                let tape = found.path.join(format!("tests/recordings/{}.yaml", pair.name));
                let source = match live {
                    Some(live) => CaseSource::Live(live.asking.recording(live.secrets.clone()), tape),
                    None => CaseSource::Recording(tape),
                };
                let case = Case {
                    module: module.clone(),
                    modules: modules.clone(),
                    folder: found.path.clone(),
                    pair: pair.clone(),
                    source,
                    model: self.asked.model.clone(),
                };
                cases.push((place, case));
            }
            if cases.len() > before || self.filter.is_none() {
                reports.push(ModuleReport::new(&found, &module, Coverage::of(&module)));
            }
        }
        Ok(Collected { reports, cases })
    }
}
