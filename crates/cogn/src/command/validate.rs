//! `cogn validate`: reports all problems of modules as text, JSON, SARIF or GitHub annotations.

use std::io::{self, BufWriter};
use std::path::Path;

use anyhow::Result;
use clap::Args;
use module::Strict;
use module::check::{CheckContext, check_with_dependencies};

use crate::exit::Exit;
use crate::modules::{DependencyIndex, Found, Search, check_all, is_module, read_folder};
use crate::output::{Output, hinted};
use crate::render::{Checked, Style, Summary, renderer};

#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// The modules: names or folders. Default: the current folder, if it is a module.
    #[arg(value_name = "MODULE")]
    names: Vec<String>,
    /// Validate all modules found.
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// Check all requirements of v2.2.
    #[arg(long, conflicts_with = "v25")]
    v22: bool,
    /// Check all requirements of v2.5.
    #[arg(long)]
    v25: bool,
    /// The output format; `--json` is the same as `--format json`.
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Style>,
}

impl Validate {
    pub(crate) fn run(&self, search: &Search, output: &Output) -> Result<Exit> {
        let fallback = if output.json { Style::Json } else { Style::Human };
        let style = self.format.unwrap_or(fallback);
        let out = BufWriter::new(output.stdout());
        let mut render = renderer(style, output.quiet, Box::new(out));
        let mut summary = Summary::default();
        let neighbours = DependencyIndex::new(search);
        let work = |found: &Result<Found>| match found {
            Ok(found) if found.shadowed_by.is_some() => Ok(None),
            Ok(found) => self.look(found, &neighbours).map(Some),
            // A new error with the same text, because errors cannot be cloned.
            Err(error) => Err(anyhow::anyhow!("{error:#}")),
        };
        let modules = self.modules(search)?;
        let written = render.begin().map_err(anyhow::Error::from).and_then(|()| {
            check_all(modules, work, |checked| {
                let Some(checked) = checked? else {
                    summary.hidden += 1;
                    return Ok(());
                };
                summary.add(&checked);
                render.module(&checked).map_err(anyhow::Error::from)
            })?;
            if summary.modules == 0 {
                let roots: Vec<String> = search
                    .roots()
                    .iter()
                    .map(|root| root.display().to_string())
                    .collect();
                let hint = format!("searched {}; --modules DIR adds a folder", roots.join(", "));
                return Err(hinted("no modules found", hint));
            }
            render.end(summary).map_err(anyhow::Error::from)
        });
        ignore_broken_pipe(written)?;
        Ok(if summary.errors > 0 {
            Exit::Failure
        } else {
            Exit::Success
        })
    }

    /// The modules to check. Unknown names fail before anything is printed.
    fn modules<'a>(&self, search: &'a Search) -> Result<Box<dyn Iterator<Item = Result<Found>> + 'a>> {
        if self.all {
            return Ok(Box::new(search.each()));
        }
        let mut names = self.names.clone();
        if names.is_empty() {
            if !is_module(Path::new(".")) {
                let hint = "give a module or its folder, or use --all; `cogn list` lists all modules";
                return Err(hinted(
                    "no module given, and the current folder is not a module",
                    hint,
                ));
            }
            names.push(String::from("."));
        }
        let found: Vec<Found> = names
            .iter()
            .map(|name| search.find(name))
            .collect::<Result<_>>()?;
        Ok(Box::new(found.into_iter().map(Ok)))
    }

    fn look(&self, found: &Found, neighbours: &DependencyIndex<'_>) -> Result<Checked> {
        let files = read_folder(&found.path)?;
        let find = |name: &str| neighbours.find(&found.path, name);
        let surroundings = CheckContext {
            folder: Some(&found.name),
            find: Some(&find),
        };
        let loaded = check_with_dependencies(&files, self.strict(), surroundings);
        Ok(Checked {
            name: found.name.clone(),
            path: found.path.clone(),
            format: loaded.module.map(|module| module.format),
            report: loaded.report,
        })
    }

    fn strict(&self) -> Strict {
        if self.v25 {
            Strict::V25
        } else if self.v22 {
            Strict::V22
        } else {
            Strict::Standard
        }
    }
}

/// `cogn validate --all | head` is not a failure.
fn ignore_broken_pipe(result: Result<()>) -> Result<()> {
    match result {
        Err(error) => match error.downcast_ref::<io::Error>() {
            Some(cause) if cause.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            _ => Err(error),
        },
        Ok(()) => Ok(()),
    }
}
