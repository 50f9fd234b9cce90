//! `cogn completions`: the completion script of a shell.

use std::io::Write;

use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use crate::cli::{Cli, called_as};
use crate::exit::Exit;
use crate::output::Output;

/// Print a script that completes commands and flags; see the manual of your shell for where to install it.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell that will run the script.
    shell: Shell,
}

impl Completions {
    /// Uses the name that the program was started as, because a shell completes names.
    pub(crate) fn run(&self, output: &Output) -> Result<Exit> {
        let mut script = Vec::new();
        generate(self.shell, &mut Cli::command(), called_as(), &mut script);
        output.stdout().write_all(&script).ok();
        Ok(Exit::Success)
    }
}
