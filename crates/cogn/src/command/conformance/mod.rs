//! `cogn conformance`: run test vectors, or hold a running server against the specification, and say which
//! level that proves.

mod fixtures;
mod server;
mod vectors;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::duration::Duration;
use crate::exit::Exit;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Conformance {
    /// Run the vectors, or make the checks, up to this level.
    #[arg(long, value_name = "LEVEL", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=4))]
    level: u8,
    /// Run the vectors in this folder (and below), or in this file, instead of our own.
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    vectors: Option<PathBuf>,
    /// Check a running server instead: ours or another.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Use this module of the server; may be given several times. Without it, the first ones listed that
    /// have what the checks need.
    #[arg(long, value_name = "NAME", requires = "url")]
    module: Vec<String>,
    /// Give the module this input, a JSON file; one for each --module, in the same order.
    #[arg(long, value_name = "FILE", requires = "module")]
    input: Vec<PathBuf>,
    /// The environment variable that holds a key for the server.
    #[arg(long, value_name = "NAME", requires = "url")]
    key_env: Option<String>,
    /// How long one answer may take.
    #[arg(long, value_name = "TIME", default_value = "30s", requires = "url")]
    timeout: Duration,
    /// Write modules for these checks, and a script that answers for their model, into this folder.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["url", "vectors"])]
    emit_modules: Option<PathBuf>,
}

impl Conformance {
    pub(crate) fn run(&self, output: &Output) -> Result<Exit> {
        if let Some(folder) = &self.emit_modules {
            return fixtures::write(folder, output);
        }
        match &self.url {
            Some(url) => self.run_server(url, output),
            None => vectors::run_vectors(self.vectors.as_deref(), self.level, output),
        }
    }
}
