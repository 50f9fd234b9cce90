//! `cargo x test`: everything that gates a change, in one command, on a fresh machine. The time it took
//! is printed at the end, beside what it may take on an idle machine.

use std::time::Instant;

use anyhow::Result;
use clap::Args;

use crate::check;
use crate::native_deps;
use crate::shell::{self, cargo};

/// On two cores, from a clean clone.
const MINUTES_MAX: u64 = 35;

#[derive(Args)]
pub(crate) struct Test {
    /// Raise the budgets of property tests and fuzz targets to hours rather than seconds.
    #[arg(long)]
    long: bool,
}

impl Test {
    #[expect(
        clippy::print_stderr,
        reason = "a build tool talks to the person who called it"
    )]
    pub(crate) fn run(&self) -> Result<()> {
        let started = Instant::now();
        check::run()?;
        let mut tests = cargo([
            "test",
            "--workspace",
            "--exclude",
            "xtask",
            "--features",
            native_deps::FEATURE,
            "--locked",
        ]);
        if self.long {
            tests
                .env("PROPTEST_CASES", "100000")
                .env("BOLERO_RANDOM_ITERATIONS", "1000000")
                .env("CHAOS_ROUNDS", "200");
        }
        shell::run(&mut tests)?;
        let minutes = started.elapsed().as_secs().div_ceil(60);
        // A figure to look at, not a test: a machine may be busy.
        eprintln!(
            "all of it passed in {minutes} min; on an idle machine it has to stay under {MINUTES_MAX} min"
        );
        Ok(())
    }
}
