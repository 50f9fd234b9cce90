//! The command line of the load test; everything else is in the library.

use anyhow::Result;
use clap::Parser;

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(loadtest::Cli::parse().run())
}
