//! One file per command: its flags, what it does, how it prints.

pub(crate) mod list;

use anyhow::Result;

use crate::cli::{Cli, Command};
use crate::exit::Exit;
use crate::modules::Search;
use crate::output::Output;

pub(crate) fn run(cli: Cli, output: &Output) -> Result<Exit> {
    let search = Search::from_environment(&cli.global.modules);
    match cli.command {
        Command::List(list) => list.run(&search, output),
    }
}
