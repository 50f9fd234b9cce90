//! `cargo x test`: all checks that gate a change, in one command, on a new machine. The elapsed time is
//! printed at the end, with its limit for an idle machine.

use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Args;

use crate::shell::{self, cargo};
use crate::{check, demo, native_deps, test_deps};

/// On two cores, from a clean clone.
const MINUTES_MAX: u64 = 28;

/// Ratio benchmarks that are tests: those of `engine`, `module` and `wire`.
const BENCHES_MIN: usize = 3;

#[derive(Args)]
pub(crate) struct Test {
    /// Run property tests and fuzz targets for hours instead of seconds.
    #[arg(long)]
    long: bool,
}

impl Test {
    #[expect(clippy::print_stderr, reason = "a build tool prints for its user")]
    pub(crate) fn run(&self) -> Result<()> {
        let started = Instant::now();
        test_deps::ensure()?;
        check::run()?;
        // Some tests are compiled only without the embedded model, which needs a C++ toolchain.
        shell::run(&mut cargo([
            "test",
            "-p",
            "local",
            "-p",
            "cogn",
            "--locked",
            "--test",
            "it",
            "--",
            "no_runtime",
            "embedded",
        ]))?;
        let mut tests = workspace_tests();
        if self.long {
            tests
                .env("PROPTEST_CASES", "100000")
                .env("BOLERO_RANDOM_ITERATIONS", "1000000")
                .env("CHAOS_ROUNDS", "200")
                .env("CRASH_POINTS", "1000000");
        }
        shell::run(&mut tests)?;
        benches_are_listed()?;
        demo::show()?;
        let minutes = started.elapsed().as_secs().div_ceil(60);
        // Printed only: on a busy machine the limit may be exceeded.
        eprintln!("all checks passed in {minutes} min; the limit on an idle machine is {MINUTES_MAX} min");
        Ok(())
    }
}

/// Test runners list the tests of a program before they run it.
fn benches_are_listed() -> Result<()> {
    let mut list = workspace_tests();
    let listed = shell::capture(list.args(["--quiet", "--bench", "ratio", "--", "--list"]))?;
    let lines: Vec<&str> = listed.lines().filter(|line| !line.is_empty()).collect();
    let are_tests = lines.iter().all(|line| *line == "ratio: test");
    ensure!(
        are_tests && lines.len() >= BENCHES_MIN,
        "the ratio benchmarks list `{listed}`"
    );
    Ok(())
}

/// The tests of all crates but this one, with the embedded model.
pub(crate) fn workspace_tests() -> Command {
    cargo([
        "test",
        "--workspace",
        "--exclude",
        "xtask",
        "--features",
        native_deps::FEATURE,
        "--locked",
    ])
}
