//! What can be asked of cogn: global flags and the list of commands. Each command's own flags stand in
//! its own file.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::command;

/// Run AI work as a contract: modules with checked inputs and outputs.
#[derive(Debug, Parser)]
#[command(name = "cogn", version, propagate_version = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Look for modules in this folder first; may be given several times.
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) modules: Vec<PathBuf>,
    /// Print JSON for machines instead of text for people.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// When to use colours; NO_COLOR is honoured.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(crate) color: Color,
    /// Say only what was asked for.
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the modules that can be found, and which of them hide others.
    List(command::list::List),
}
