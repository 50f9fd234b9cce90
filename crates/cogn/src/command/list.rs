//! `cogn list`: every module that can be found, in search order.

use anyhow::Result;
use clap::Args;
use module::load;
use owo_colors::OwoColorize;
use serde_json::json;

use crate::exit::Exit;
use crate::modules::{Search, read_folder};
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct List {}

impl List {
    #[expect(clippy::unused_self, reason = "every command has the same form")]
    pub(crate) fn run(&self, search: &Search, output: &Output) -> Result<Exit> {
        let mut rows = Vec::new();
        for found in search.all()? {
            let files = read_folder(&found.path)?;
            let loaded = load(&files);
            let Some(module) = loaded.module else { continue };
            if output.json {
                rows.push(json!({
                    "name": found.name,
                    "version": module.manifest.version,
                    "format": module.format.as_str(),
                    "tier": module.manifest.tier.as_str(),
                    "responsibility": module.manifest.responsibility,
                    "path": found.path,
                    "shadowed_by": found.shadowed_by,
                }));
            } else {
                let shadow = found
                    .shadowed_by
                    .as_ref()
                    .map_or_else(String::new, |by| format!(" (hidden by {})", by.display()));
                output.line(format!(
                    "{:<24} {:<8} {:<5} {:<12} {}{}",
                    found.name.bold(),
                    module.manifest.version,
                    module.format,
                    module.manifest.tier.as_str(),
                    module.manifest.responsibility,
                    shadow.dimmed()
                ))?;
            }
        }
        if output.json {
            output.json(&rows)?;
        }
        Ok(Exit::Good)
    }
}
