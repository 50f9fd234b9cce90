//! How speed is measured: `upstream` plays a model server, `floor` is the least that a proxy which reads JSON
//! must do, `load` asks and counts. Three processes, so that each can be given a core of its own and the
//! kernel counts their time apart. Knows nothing of cogn: it measures from outside, whoever is measured.

#![expect(
    clippy::disallowed_methods,
    reason = "a measuring tool: it is killed when the figure is there, and reads the clock on the wall"
)]

mod behaviour;
mod floor;
mod load;
mod process;
mod reply;
mod upstream;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Measure a gateway against the bare transport.
#[derive(Parser)]
#[command(name = "yardstick")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// A server that answers like a model server, as its model's name says.
    Upstream(upstream::Upstream),
    /// A proxy that parses every body and event and passes it on.
    Floor(floor::Floor),
    /// Ask for a while and print one line of JSON.
    Load(load::Load),
}

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match Cli::parse().command {
        Command::Upstream(upstream) => runtime.block_on(upstream.serve()),
        Command::Floor(floor) => runtime.block_on(floor.serve()),
        Command::Load(load) => runtime.block_on(load.run()),
    }
}
