//! The command line: global flags and the list of commands. The flags of a command are defined in the file
//! of the command.

use std::env;
use std::path::{Path, PathBuf};

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
    /// Search this folder for modules first; may be given several times.
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) modules: Vec<PathBuf>,
    /// Print JSON instead of text.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// When to use colours; NO_COLOR is respected.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(crate) color: Color,
    /// Print only the result, without notes and progress.
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
    /// Report all problems of modules, with position, code and fix.
    Validate(command::validate::Validate),
    /// List all modules found, and mark modules that are hidden by others.
    List(command::list::List),
    /// Show the properties of a module, defaults included.
    Info(command::info::Info),
    /// Create a valid module with a golden test.
    New(command::new::New),
    /// Check a saved reply of a model, or a recorded stream, against a module's contract.
    Check(command::check::Check),
    /// Convert modules to a newer format, preserving comments and order; the old folder becomes a backup.
    Migrate(command::migrate::Migrate),
    /// Run a module on an input and print the envelope.
    Run(Box<command::run::Run>),
    /// Draw the composition of a module: the modules it requires and calls, their versions and fallbacks.
    Compose(command::compose::Compose),
    /// Show which back-ends would get a request, in which order, and why others are excluded; calls none.
    Route(command::route::Route),
    /// Check saved envelopes against confidence and risk limits; list those that need review.
    Gate(command::gate::Gate),
    /// Run the golden tests of modules with recorded answers.
    Test(Box<command::test::Test>),
    /// Serve the modules over HTTP.
    Serve(command::serve::Serve),
    /// Serve the modules as MCP tools over standard input and output.
    Mcp(command::mcp::Mcp),
    /// Create, list and revoke API keys of a server.
    Keys(command::keys::Keys),
    /// Show the usage of a server's runs.
    Usage(command::usage::Usage),
    /// Run conformance vectors or check a server, and report the level reached.
    Conformance(command::conformance::Conformance),
    /// Convert a document or a stream from one dialect to another, and list the losses.
    Convert(command::convert::Convert),
    /// List the back-ends and why some are unavailable; `check` tests their features.
    Backends(command::backends::Backends),
    /// Check that this machine has what a run needs, and show how to fix what is missing.
    Doctor(command::doctor::Doctor),
    /// Show the effective configuration, the origin of each value, and problems.
    Config(command::config::Config),
    /// Trust a project's cogn.toml as it is now, so that all its settings apply.
    Trust(command::trust::Trust),
    /// List, download and remove the weights of embedded models.
    Models(command::models::Models),
    /// Explain an error, warning or diagnostic code and how to fix it.
    Explain(command::explain::Explain),
    /// Print the completion script of a shell.
    Completions(command::completions::Completions),
    /// Print the manual page, or write one page per command to a folder.
    Man(command::man::Man),
    /// Print the reference of the command line as markdown.
    #[command(hide = true)]
    InternalDocs(command::internal_docs::InternalDocs),
}

/// The name that the program was started as: `cog` is the short name, any other name counts as `cogn`.
pub(crate) fn called_as() -> &'static str {
    let first = env::args_os().next().map(PathBuf::from);
    match first.as_deref().and_then(Path::file_stem) {
        Some(stem) if stem == "cog" => "cog",
        _ => "cogn",
    }
}
