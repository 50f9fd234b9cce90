//! `cogn backends`: who can be asked, and whether each can do what is said of it.

mod check;
mod list;
mod probe;
mod operation_probe;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};
use engine::Depot;

use crate::backends::BackendCatalog;
use crate::config::{Settings, Sources};
use crate::duration::Duration;
use crate::exit::Exit;
use crate::output::Output;
use crate::wiring;

#[derive(Debug, Args)]
pub(crate) struct Backends {
    /// Use this file in place of the project's cogn.toml.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the back-ends of the configuration (what happens without a word).
    List,
    /// Reach each back-end, and compare what is declared of it with what it does. Asks each for a few words.
    Check {
        /// Only these; all, where none is named.
        names: Vec<String>,
        /// Reach them and try their keys, but ask no model for anything.
        #[arg(long)]
        reach_only: bool,
        /// How long one try may take (500ms, 30s, 2m).
        #[arg(long, value_name = "TIME", default_value = "30s")]
        timeout: Duration,
    },
}

impl Backends {
    pub(crate) fn run(&self, output: &Output) -> Result<Exit> {
        let settings = Settings::of(&Sources::from_environment(self.config.as_deref())?.merge()?)?;
        let shelf = BackendCatalog::new(settings, Depot::default())?;
        match &self.action {
            None | Some(Action::List) => {
                list::print(&shelf.all(), output)?;
                Ok(Exit::Success)
            }
            Some(Action::Check {
                names,
                reach_only,
                timeout,
            }) => {
                let listed = match names.is_empty() {
                    true => shelf.all(),
                    false => names
                        .iter()
                        .map(|name| shelf.named(name))
                        .collect::<Result<_>>()?,
                };
                let patience = std::time::Duration::from_millis(timeout.as_millis());
                let checking = check::all(listed, *reach_only, patience);
                let reports = wiring::current_thread_runtime()?.block_on(checking);
                check::print(&reports, output)?;
                let good = reports.iter().all(check::BackendReport::is_good);
                Ok(if good { Exit::Success } else { Exit::Failure })
            }
        }
    }
}
