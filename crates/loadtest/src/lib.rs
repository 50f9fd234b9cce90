//! Load tests: `upstream` is a mock model server, `floor` is a minimal proxy that parses JSON, `load` sends
//! requests and measures. They are three processes, so that each can be pinned to a core and the kernel
//! accounts their time separately, and a library, so that tests measure the same way. This crate does not
//! depend on cogn: it measures any gateway from outside.

#![expect(
    clippy::disallowed_methods,
    reason = "a measuring tool: it is killed when the figure is there, and reads the clock on the wall"
)]

mod baseline_proxy;
mod behaviour;
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
    /// A mock model server whose behaviour is specified by the model name.
    Upstream(upstream::Upstream),
    /// A proxy that parses every body and event and forwards it.
    Floor(baseline_proxy::BaselineProxy),
    /// Send requests for a given time and print one line of JSON.
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

/// The output of `loadtest load` with these flags.
pub async fn figures<T: Into<OsString>>(flags: impl IntoIterator<Item = T>) -> Result<Value> {
    let words = ["loadtest", "load"].map(OsString::from);
    let words = words.into_iter().chain(flags.into_iter().map(Into::into));
    match Cli::try_parse_from(words)?.command {
        Command::Load(load) => load.measure().await,
        _ => bail!("no load"),
    }
}

/// Starts an upstream on a separate thread, until the end of this process.
pub fn upstream() -> Result<SocketAddr> {
    upstream::Upstream::aside()
}
