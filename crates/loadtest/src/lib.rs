//! How speed is measured: `upstream` plays a model server, `floor` is the least that a proxy which reads JSON
//! must do, `load` asks and counts. Three processes, so that each can be given a core of its own and the
//! kernel counts their time apart; a library too, so that tests measure with the same words. Knows nothing of
//! cogn: it measures from outside, whoever is measured.

#![expect(
    clippy::disallowed_methods,
    reason = "a measuring tool: it is killed when the figure is there, and reads the clock on the wall"
)]

mod behaviour;
mod baseline_proxy;
mod load;
mod process;
mod response;
mod upstream;

use std::ffi::OsString;
use std::net::SocketAddr;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};
use serde_json::Value;

/// Measure a gateway against the bare transport.
#[derive(Debug, Parser)]
#[command(name = "loadtest")]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// A server that answers like a model server, as its model's name says.
    Upstream(upstream::Upstream),
    /// A proxy that parses every body and event and passes it on.
    Floor(baseline_proxy::BaselineProxy),
    /// Ask for a while and print one line of JSON.
    Load(load::Load),
}

impl Cli {
    pub async fn run(self) -> Result<()> {
        match self.command {
            Command::Upstream(upstream) => upstream.serve().await,
            Command::Floor(floor) => floor.serve().await,
            Command::Load(load) => load.run().await,
        }
    }
}

/// What `loadtest load` with these flags would print.
pub async fn figures<T: Into<OsString>>(flags: impl IntoIterator<Item = T>) -> Result<Value> {
    let words = ["loadtest", "load"].map(OsString::from);
    let words = words.into_iter().chain(flags.into_iter().map(Into::into));
    match Cli::try_parse_from(words)?.command {
        Command::Load(load) => load.measure().await,
        _ => bail!("no load"),
    }
}

/// An upstream on a thread of its own, for as long as this process lives.
pub fn upstream() -> Result<SocketAddr> {
    upstream::Upstream::aside()
}
