//! `cogn backends`: lists the back-ends, and checks that each supports its declared features.

mod check;
pub(crate) mod connectivity;
mod list;
mod operation_probe;
mod probe;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};
use spill::SpillStore;

use crate::backends::BackendCatalog;
use crate::config::{Settings, Sources};
use crate::duration::Duration;
use crate::exit::Exit;
use crate::output::{Output, warn_once};
use crate::wiring;

#[derive(Debug, Args)]
pub(crate) struct Backends {
    /// Use this file instead of the project's cogn.toml.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the configured back-ends (default).
    List,
    /// Connect to each back-end and compare its declared features with its behaviour. Sends short requests.
    Check {
        /// The back-ends to check; default: all.
        names: Vec<String>,
        /// Check connectivity and keys only; send no request to a model.
        #[arg(long)]
        connectivity_only: bool,
        /// Former name of `--connectivity-only`.
        #[arg(long, hide = true)]
        reach_only: bool,
        /// Time limit of one request (500ms, 30s, 2m).
        #[arg(long, value_name = "TIME", default_value = "30s")]
        timeout: Duration,
    },
}

impl Backends {
    pub(crate) fn run(&self, output: &Output) -> Result<Exit> {
        let settings = Settings::of(&Sources::from_environment(self.config.as_deref())?.merge()?)?;
        let catalog = BackendCatalog::new(settings, SpillStore::default())?;
        match &self.action {
            None | Some(Action::List) => {
                list::print(&catalog.all(), output)?;
                Ok(Exit::Success)
            }
            Some(Action::Check {
                names,
                connectivity_only,
                reach_only,
                timeout,
            }) => {
                if *reach_only {
                    warn_once(
                        "`--reach-only` was renamed to `--connectivity-only`; the old name is accepted in this version only",
                    );
                }
                let listed = match names.is_empty() {
                    true => catalog.all(),
                    false => names
                        .iter()
                        .map(|name| catalog.named(name))
                        .collect::<Result<_>>()?,
                };
                let patience = std::time::Duration::from_millis(timeout.as_millis());
                let checking = check::all(listed, *connectivity_only || *reach_only, patience);
                let reports = wiring::current_thread_runtime()?.block_on(checking);
                check::print(&reports, output)?;
                let good = reports.iter().all(check::BackendReport::is_good);
                Ok(if good { Exit::Success } else { Exit::Failure })
            }
        }
    }
}
