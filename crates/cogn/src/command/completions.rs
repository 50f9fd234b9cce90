//! `cogn completions`: what a shell needs to complete our commands.

use std::io::Write;

use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use crate::cli::{Cli, called_as};
use crate::exit::Exit;
use crate::output::Output;

/// Print a script that completes commands and flags; see the manual of your shell for where it goes.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell to write for.
    shell: Shell,
}

impl Completions {
    /// For the name we were called by, since a shell completes names, not programs.
    pub(crate) fn run(&self, output: &Output) -> Result<Exit> {
        let mut script = Vec::new();
        generate(self.shell, &mut Cli::command(), called_as(), &mut script);
        output.stdout().write_all(&script).ok();
        Ok(Exit::Success)
    }
}
