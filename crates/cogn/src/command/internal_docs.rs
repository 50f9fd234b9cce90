//! `cogn internal-docs`: the reference of the command line as markdown. A hidden command rather than a
//! tool of its own, because only this binary knows its flags. docs/reference/cli.md is its output.

use std::fmt::Write;

use anyhow::Result;
use clap::{Arg, Args, Command, CommandFactory};

use crate::cli::Cli;
use crate::exit::Exit;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct InternalDocs {}

impl InternalDocs {
    #[expect(clippy::unused_self, reason = "every command has the same form")]
    pub(crate) fn run(&self, output: &Output) -> Result<Exit> {
        output.line(markdown(Cli::command())?.trim_end())?;
        Ok(Exit::Success)
    }
}

fn markdown(mut root: Command) -> Result<String> {
    root.build();
    let mut text = String::from("# The command line\n\n");
    writeln!(
        text,
        "Written by `cargo x gen` from the commands themselves. `cog` is another name of `cogn`.\n"
    )?;
    writeln!(text, "{}\n", sentence(&root))?;
    writeln!(
        text,
        "Exit codes: 0 all is well; 1 the contract says no; 2 usage, configuration or IO.\n"
    )?;
    writeln!(text, "| command | what it does |\n|---|---|")?;
    for command in shown(&root) {
        let name = command.get_name();
        writeln!(text, "| [`cogn {name}`](#cogn-{name}) | {} |", summary(command))?;
    }
    writeln!(text, "\n## Global options\n")?;
    for arg in root.get_arguments().filter(|arg| !arg.is_hide_set()) {
        option(arg, &mut text)?;
    }
    for command in shown(&root) {
        section(command, "cogn", &mut text)?;
    }
    Ok(text)
}

fn section(command: &Command, parent: &str, text: &mut String) -> Result<()> {
    let name = format!("{parent} {}", command.get_name());
    writeln!(text, "\n## {name}\n\n{}\n", sentence(command))?;
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    writeln!(text, "```\n{usage}\n```")?;
    let own: Vec<_> = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && !arg.is_global_set() && arg.get_id() != "help")
        .filter(|arg| arg.get_id() != "version")
        .collect();
    if !own.is_empty() {
        writeln!(text)?;
    }
    for arg in own {
        option(arg, text)?;
    }
    for child in shown(command) {
        section(child, &name, text)?;
    }
    Ok(())
}

fn option(arg: &Arg, text: &mut String) -> Result<()> {
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let help = stopped(help.map(ToString::to_string).unwrap_or_default());
    write!(text, "- `{}`: {}", spelling(arg), help.replace('\n', " "))?;
    let values: Vec<_> = arg
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !values.is_empty() && arg.get_action().takes_values() {
        write!(text, " One of {}.", values.join(", "))?;
    }
    let defaults: Vec<_> = arg
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy())
        .collect();
    if !defaults.is_empty() && arg.get_action().takes_values() {
        write!(text, " Default: `{}`.", defaults.join(" "))?;
    }
    writeln!(text)?;
    Ok(())
}

/// `-q, --quiet`, `--modules <DIR>`, `[CODE]`.
fn spelling(arg: &Arg) -> String {
    let short = arg.get_short().map(|letter| format!("-{letter}"));
    let long = arg.get_long().map(|word| format!("--{word}"));
    let flags: Vec<_> = short.into_iter().chain(long).collect();
    let value = arg
        .get_value_names()
        .and_then(|names| names.first())
        .map(|name| match arg.is_positional() && !arg.is_required_set() {
            true => format!("[{name}]"),
            false => format!("<{name}>"),
        })
        .filter(|_| arg.get_action().takes_values())
        .unwrap_or_default();
    format!("{} {value}", flags.join(", ")).trim().to_owned()
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command
        .get_subcommands()
        .filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

fn summary(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

fn sentence(command: &Command) -> String {
    let about = command.get_long_about().or_else(|| command.get_about());
    stopped(about.map(ToString::to_string).unwrap_or_default())
}

/// clap takes the full stop away from what it prints as one line.
fn stopped(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with(['.', '!', '?', ':']) {
        text.push('.');
    }
    text
}
