//! `cargo x`: the commands that build, check and measure this repository; CI runs the same ones. Each prints
//! what it runs, and installs missing tools after announcing it.

mod audit;
mod bench;
mod check;
mod demo;
mod dist;
mod generate;
#[expect(
    clippy::expect_used,
    reason = "nothing here works outside a readable git checkout"
)]
mod git_files;
mod messages;
mod native_deps;
mod release;
mod shell;
mod source;
mod test;
mod test_deps;
#[cfg(test)]
mod tidy;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Build, check and measure this repository.
#[derive(Parser)]
#[command(name = "cargo x")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Formatting, lints, documentation and repository rules.
    Check,
    /// All checks that gate a change: `check` and all tests.
    Test(test::Test),
    /// Check dependencies against the database of known vulnerabilities; requires the network.
    Audit,
    /// Regenerate files that are generated from code: reference pages.
    Gen,
    /// Measure speed as ratios to baselines in the same run.
    Bench(bench::Bench),
    /// Build cogn with the embedded model, download small weights, and run an example without a key.
    Demo,
    /// Build the release archive with completions and manual pages.
    Dist(dist::Dist),
}

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Check => check::run(),
        Command::Test(test) => test.run(),
        Command::Audit => audit::audit(),
        Command::Gen => generate::run(),
        Command::Bench(bench) => bench.run(),
        Command::Demo => demo::show(),
        Command::Dist(dist) => dist.run(),
    }
}
