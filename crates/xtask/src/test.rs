//! `cargo x test`: all checks that gate a change, in one command, on a new machine. The elapsed time is
//! printed at the end, with its limit for an idle machine.

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
    /// Run property tests and fuzz targets for hours instead of seconds.
    #[arg(long)]
    long: bool,
}

impl Test {
    #[expect(clippy::print_stderr, reason = "a build tool prints for its user")]
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
        // Printed only: on a busy machine the limit may be exceeded.
        eprintln!("all checks passed in {minutes} min; the limit on an idle machine is {MINUTES_MAX} min");
        Ok(())
    }
}
