//! `cogn man`: manual pages.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, CommandFactory};
use clap_mangen::Man as Page;

use crate::cli::Cli;
use crate::exit::Exit;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Write one page per command to this folder; it is created if it does not exist.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(&self, output: &Output) -> Result<Exit> {
        let Some(dir) = &self.dir else {
            let mut page = Vec::new();
            Page::new(Cli::command()).render(&mut page)?;
            output.stdout().write_all(&page).ok();
            return Ok(Exit::Success);
        };
        fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        clap_mangen::generate_to(Cli::command(), dir)
            .with_context(|| format!("cannot write manual pages to {}", dir.display()))?;
        output.note(format!("wrote the manual pages to {}", dir.display()));
        Ok(Exit::Success)
    }
}
