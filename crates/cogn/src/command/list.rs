//! `cogn list`: all modules found, in search order. Invalid modules are marked as broken.

use anyhow::Result;
use clap::Args;
use module::{Module, load};
use owo_colors::OwoColorize;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::modules::{Found, Search, check_all, read_folder};
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct List {}

/// A line of the list.
struct ModuleRow {
    found: Found,
    facts: Option<ModuleDetails>,
    /// Why it cannot be used, if so.
    broken: Option<String>,
}

struct ModuleDetails {
    version: String,
    format: &'static str,
    tier: &'static str,
    mode: Value,
    responsibility: String,
}

impl List {
    #[expect(clippy::unused_self, reason = "every command has the same form")]
    pub(crate) fn run(&self, search: &Search, output: &Output) -> Result<Exit> {
        let mut rows = Vec::new();
        let mut found_any = false;
        let work = |found: &Result<Found>| match found {
            Ok(found) => Ok(look(found)),
            Err(error) => Err(anyhow::anyhow!("{error:#}")),
        };
        check_all(search.each(), work, |row| -> Result<()> {
            let row = row?;
            found_any = true;
            if output.json {
                rows.push(row.json());
            } else {
                output.line(row.text())?;
            }
            Ok(())
        })?;
        if output.json {
            output.json(&rows)?;
        }
        if !found_any {
            nothing_found(search, output);
        }
        Ok(Exit::Success)
    }
}

/// States where modules were searched.
fn nothing_found(search: &Search, output: &Output) {
    output.note("No modules found in:");
    for root in search.roots() {
        let state = if root.is_dir() {
            "no modules"
        } else {
            "does not exist"
        };
        output.note(format!("  {} ({state})", root.display()));
    }
    output.note("Create one with `cogn new NAME`, or name a folder of modules with --modules DIR or COGNITIVE_MODULES_PATH.");
}

fn look(found: &Found) -> ModuleRow {
    let (facts, broken) = match read_folder(&found.path) {
        Err(error) => (None, Some(format!("{error:#}"))),
        Ok(files) => {
            let loaded = load(&files);
            let mut errors = loaded
                .report
                .iter()
                .filter(|found| found.severity == module::Severity::Error);
            let broken = errors.next().map(|error| error.message.clone());
            (loaded.module.as_ref().map(ModuleDetails::of), broken)
        }
    };
    ModuleRow {
        found: found.clone(),
        facts,
        broken,
    }
}

impl ModuleDetails {
    fn of(module: &Module) -> Self {
        Self {
            version: module.manifest.version.clone(),
            format: module.format.as_str(),
            tier: module.manifest.tier.as_str(),
            mode: json!(module.manifest.response.mode),
            responsibility: module.manifest.responsibility.clone(),
        }
    }
}

impl ModuleRow {
    fn json(&self) -> Value {
        let facts = self.facts.as_ref();
        json!({
            "name": self.found.name,
            "version": facts.map(|facts| &facts.version),
            "format": facts.map(|facts| facts.format),
            "tier": facts.map(|facts| facts.tier),
            "response_mode": facts.map(|facts| &facts.mode),
            "responsibility": facts.map(|facts| &facts.responsibility),
            "path": self.found.path,
            "shadowed_by": self.found.shadowed_by,
            "broken": self.broken,
        })
    }

    fn text(&self) -> String {
        let hidden = match &self.found.shadowed_by {
            Some(by) => format!(" (hidden by {})", by.display()),
            None => String::new(),
        };
        let broken = match &self.broken {
            Some(why) => format!(" (broken: {why})"),
            None => String::new(),
        };
        match &self.facts {
            Some(facts) => format!(
                "{:<24} {:<8} {:<5} {:<12} {}{}{}",
                self.found.name.bold(),
                facts.version,
                facts.format,
                facts.tier,
                facts.responsibility,
                broken.red(),
                hidden.dimmed()
            ),
            None => format!(
                "{:<24}{}{}",
                self.found.name.bold(),
                broken.red(),
                hidden.dimmed()
            ),
        }
    }
}
