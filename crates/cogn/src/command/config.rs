//! `cogn config`: the effective configuration, the origin of each value, and its problems.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};
use owo_colors::OwoColorize;
use serde_json::{Value, json};

use crate::config::{self, Merged, Problem, Sources};
use crate::exit::Exit;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Config {
    /// Use this file instead of the project's cogn.toml.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the effective configuration.
    Show {
        /// Show the origin of each value.
        #[arg(long)]
        explain: bool,
    },
    /// Report the problems of the configuration, with their origin.
    Check,
    /// Print the JSON Schema of cogn.toml, for editors.
    Schema,
}

impl Config {
    pub(crate) fn run(&self, output: &Output) -> Result<Exit> {
        if matches!(self.action, Action::Schema) {
            output.line(config::SCHEMA.trim_end())?;
            return Ok(Exit::Success);
        }
        let merged = Sources::from_environment(self.config.as_deref())?.merge()?;
        match self.action {
            Action::Show { explain } => show(&merged, explain, output)?,
            Action::Check => return check(&merged, output),
            Action::Schema => {}
        }
        Ok(Exit::Success)
    }
}

fn show(merged: &Merged, explain: bool, output: &Output) -> Result<()> {
    if output.json && !explain {
        return Ok(output.json(&merged.tree)?);
    }
    let rows: Vec<_> = merged.leaves().collect();
    if output.json {
        let rows = rows.iter().map(|leaf| {
            let origin = leaf.origin.map(ToString::to_string);
            json!({"key": leaf.key, "value": leaf.value, "origin": origin})
        });
        return Ok(output.json(&rows.collect::<Vec<_>>())?);
    }
    for leaf in rows {
        let value = leaf.value.to_string();
        match leaf.origin.filter(|_| explain) {
            Some(origin) => output.line(format!(
                "{} = {value}  {}",
                leaf.key.bold(),
                format!("# {origin}").dimmed()
            ))?,
            None => output.line(format!("{} = {value}", leaf.key.bold()))?,
        }
    }
    Ok(())
}

fn check(merged: &Merged, output: &Output) -> Result<Exit> {
    let problems = config::problems(merged)?;
    if output.json {
        output.json(&problems.iter().map(problem_json).collect::<Vec<_>>())?;
    } else {
        for problem in &problems {
            output.line(problem_text(problem))?;
        }
        if problems.is_empty() {
            output.note("the configuration is valid");
        }
    }
    Ok(if problems.is_empty() {
        Exit::Success
    } else {
        Exit::Error
    })
}

fn problem_json(problem: &Problem) -> Value {
    json!({
        "key": problem.key,
        "message": problem.message,
        "hint": problem.hint,
        "origin": problem.origin.as_ref().map(ToString::to_string),
    })
}

fn problem_text(problem: &Problem) -> String {
    let hint = problem
        .hint
        .as_ref()
        .map(|hint| format!("\n  {} {hint}", "help:".cyan()))
        .unwrap_or_default();
    format!("{problem}{hint}")
}
