//! `cogn conformance`: runs test vectors or checks a running server against the specification, and reports
//! the proven level.

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
    /// Run the vectors or the checks up to this level.
    #[arg(long, value_name = "LEVEL", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=4))]
    level: u8,
    /// Run the vectors of this folder and its subfolders, or of this file, instead of the built-in ones.
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    vectors: Option<PathBuf>,
    /// Check a running server instead, of cogn or of another implementation.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Use this module of the server; may be given several times. Default: the first listed modules that
    /// are suitable for the checks.
    #[arg(long, value_name = "NAME", requires = "url")]
    module: Vec<String>,
    /// The input of the module, a JSON file; one for each --module, in the same order.
    #[arg(long, value_name = "FILE", requires = "module")]
    input: Vec<PathBuf>,
    /// The environment variable with the key for the server.
    #[arg(long, value_name = "NAME", requires = "url")]
    key_env: Option<String>,
    /// Time limit of one response.
    #[arg(long, value_name = "TIME", default_value = "30s", requires = "url")]
    timeout: Duration,
    /// Write modules for these checks, and a script with the answers of their model, to this folder.
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
