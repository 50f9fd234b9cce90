//! `cargo x`: the few commands that build, check and measure this repository. CI calls exactly these.
//! Each says what it runs, and installs what it needs after saying what and why.

mod bench;
mod check;
mod demo;
mod dist;
mod generate;
mod native_deps;
mod release;
mod shell;
mod test;
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
    /// Formatting, lints, documentation and the rules of the house.
    Check,
    /// Everything that gates a change: `check` and all tests.
    Test(test::Test),
    /// Write again what is generated from code: reference pages.
    Gen,
    /// Measure speed as ratios against baselines in the same run.
    Bench(bench::Bench),
    /// Build cogn with the embedded model, fetch small weights, and run an example: no key needed.
    Demo,
    /// Build the release archive with completions and manual pages.
    Dist,
}

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Check => check::run(),
        Command::Test(test) => test.run(),
        Command::Gen => generate::run(),
        Command::Bench(bench) => bench.run(),
        Command::Demo => demo::show(),
        Command::Dist => dist::pack(),
    }
}
