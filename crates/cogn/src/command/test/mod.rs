//! `cogn test`: runs the golden tests of modules with recorded answers. Back-ends are called only with
//! `--record`. A request that differs from the recorded one is reported as stale.

mod case;
mod human_output;
mod junit;
mod record_example;
mod report;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use futures::{StreamExt, stream};
use module::golden::unlisted_tests;
use secrecy::SecretString;

pub(crate) use self::record_example::record_example;

use self::case::{Case, CaseSource};
use self::report::{ModuleReport, TestReport, Thresholds};
use crate::atomic_file;
use crate::command_engine::{BackendArgs, CommandEngine};
use crate::config;
use crate::exit::Exit;
use crate::modules::{Found, Library, Search, read_folder};
use crate::output::{Output, hinted};
use crate::wiring;

/// Default of `--jobs`.
const JOBS: usize = 4;
const JOBS_MAX: usize = 64;

#[derive(Debug, Args)]
pub(crate) struct Test {
    /// The modules: names or folders.
    #[arg(required_unless_present = "all")]
    module: Vec<String>,
    /// Test all modules found.
    #[arg(long, conflicts_with = "module")]
    all: bool,
    /// Call the back-ends and write their answers to tests/recordings of the module.
    #[arg(long)]
    record: bool,
    #[command(flatten)]
    asked: BackendArgs,
    /// Run only tests whose name, as MODULE/TEST, contains this text.
    #[arg(short = 'k', long = "filter", value_name = "TEXT")]
    filter: Option<String>,
    /// Limit of concurrent tests.
    #[arg(short, long, value_name = "N", default_value_t = JOBS, value_parser = jobs)]
    jobs: usize,
    /// Write the results to this file, as JUnit XML for CI systems.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Minimum percentage of tests that must pass.
    #[arg(long, value_name = "PERCENT", default_value_t = 100.0, value_parser = percent)]
    min_pass: f64,
    /// Minimum percentage of the fields of each data schema that the answers must contain.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    min_coverage: f64,
}

pub(crate) fn jobs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(jobs) if (1..=JOBS_MAX).contains(&jobs) => Ok(jobs),
        _ => Err(format!("must be a number from 1 to {JOBS_MAX}")),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err(String::from("must be a number from 0 to 100")),
    }
}

/// The back-ends that are called with `--record`.
struct LiveBackends {
    asking: CommandEngine,
    secrets: Vec<SecretString>,
}

/// An empty report for each module, and the tests with the index of their report.
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
                Some(filter) => format!("no test name contains `{filter}`"),
                None => String::from("a test is a pair tests/NAME.input.json and tests/NAME.expected.json"),
            };
            return Err(hinted("no tests to run", hint));
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
        Ok(if report.is_good() {
            Exit::Success
        } else {
            Exit::Failure
        })
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
                let unlisted = unlisted_tests(&read_folder(&found.path)?, &module);
                let unlisted = unlisted.into_iter().map(|pair| pair.input).collect();
                reports.push(ModuleReport::new(&found, &module, unlisted));
            }
        }
        Ok(Collected { reports, cases })
    }
}
