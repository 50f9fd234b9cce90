//! What can be asked of cogn: global flags and the list of commands. Each command's own flags stand in
//! its own file.

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
    /// Say everything that is wrong with modules, with place, code and a way out.
    Validate(command::validate::Validate),
    /// List the modules that can be found, and which of them hide others.
    List(command::list::List),
    /// Show everything that follows from a module's files, defaults included.
    Info(command::info::Info),
    /// Make a new module that is valid from the first moment and has a golden test.
    New(command::new::New),
    /// Hold a saved reply of a model, or a recorded stream, against a module's contract.
    Check(command::check::Check),
    /// Rewrite modules in a newer format, keeping comments and order; the old folder becomes a backup.
    Migrate(command::migrate::Migrate),
    /// Run a module on an input and print the envelope.
    Run(Box<command::run::Run>),
    /// Draw what a module is made of: the modules it requires and calls, their versions and fallbacks.
    Compose(command::compose::Compose),
    /// Say which back-ends a request would go to, in which order, and why the others not; asks nobody.
    Route(command::route::Route),
    /// Let saved envelopes pass that are sure and harmless enough; name the others.
    Gate(command::gate::Gate),
    /// Run the golden tests of modules, from recordings.
    Test(Box<command::test::Test>),
    /// Serve the modules over HTTP.
    Serve(command::serve::Serve),
    /// Offer the modules as tools to the MCP host that starts this command.
    Mcp(command::mcp::Mcp),
    /// Make, list and revoke the keys that open a server.
    Keys(command::keys::Keys),
    /// Say what the runs of a server have used.
    Usage(command::usage::Usage),
    /// Run conformance vectors and say which level they prove.
    Conformance(command::conformance::Conformance),
    /// Turn a document or a stream of one dialect into another, and list what is lost.
    Convert(command::convert::Convert),
    /// List the back-ends and why some cannot be asked; `check` tries what they can do.
    Backends(command::backends::Backends),
    /// Look over everything that a run needs on this machine, and say what to do about what is missing.
    Doctor(command::doctor::Doctor),
    /// Show the configuration in force, where it came from, and what is wrong with it.
    Config(command::config::Config),
    /// List, fetch and remove the weights of embedded models.
    Models(command::models::Models),
    /// Say what an error, warning or diagnostic code means and how to mend it.
    Explain(command::explain::Explain),
    /// Print a shell's completion script.
    Completions(command::completions::Completions),
    /// Print the manual page, or write a page for each command.
    Man(command::man::Man),
    /// Print the reference of the command line as markdown.
    #[command(hide = true)]
    InternalDocs(command::internal_docs::InternalDocs),
}

/// The name we were called by: `cog` is the short one, everything else is `cogn`.
pub(crate) fn called_as() -> &'static str {
    let first = env::args_os().next().map(PathBuf::from);
    match first.as_deref().and_then(Path::file_stem) {
        Some(stem) if stem == "cog" => "cog",
        _ => "cogn",
    }
}
