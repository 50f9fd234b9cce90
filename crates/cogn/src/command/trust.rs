//! `cogn trust`: the user's consent to the configuration file of a project, bound to its path and content.

use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::Result;
use clap::Args;
use serde_json::json;

use crate::config::project::{self, TrustState, TrustStore};
use crate::config::{parse, read};
use crate::exit::Exit;
use crate::output::{Output, hinted};

#[derive(Debug, Args)]
pub(crate) struct Trust {
    /// The folder with the cogn.toml, or the file; default: the nearest one from here upwards.
    path: Option<PathBuf>,
    /// List the trusted files, and whether they have changed since.
    #[arg(long, conflicts_with_all = ["path", "revoke"])]
    list: bool,
    /// Stop trusting the file.
    #[arg(long)]
    revoke: bool,
}

impl Trust {
    pub(crate) fn run(self, output: &Output) -> Result<Exit> {
        let store = TrustStore::from_environment();
        if self.list {
            return list(&store, output);
        }
        let path = self.path.map_or_else(nearest, |path| Ok(file_of(path)))?;
        match self.revoke {
            true => revoke(&store, &path, output),
            false => trust(&store, &path, output),
        }
    }
}

fn nearest() -> Result<PathBuf> {
    project::nearest().ok_or_else(|| {
        hinted(
            "no cogn.toml in this folder or its parents",
            "name the folder: cogn trust FOLDER",
        )
    })
}

fn file_of(path: PathBuf) -> PathBuf {
    match path.is_dir() {
        true => path.join("cogn.toml"),
        false => path,
    }
}

fn trust(store: &TrustStore, path: &Path, output: &Output) -> Result<Exit> {
    project::refuse_other_owners(path)?;
    let Some(text) = read(path)? else {
        return Err(hinted(
            format!("no file at {}", path.display()),
            "name the folder with the cogn.toml: cogn trust FOLDER",
        ));
    };
    let settings = project::restricted_settings(&parse(path, &text)?);
    let record = store.trust(path, &text)?;
    if output.json {
        output.json(&json!({
            "path": record.path,
            "state": TrustState::Trusted,
            "sha256": record.sha256,
            "settings": settings,
        }))?;
        return Ok(Exit::Success);
    }
    output.line(format!("trusted {}", record.path.display()))?;
    for setting in &settings {
        output.line(format!("  {setting} now applies"))?;
    }
    output.note("When the file changes, cogn ignores these settings until you run `cogn trust` again.");
    Ok(Exit::Success)
}

fn revoke(store: &TrustStore, path: &Path, output: &Output) -> Result<Exit> {
    if !store.revoke(path)? {
        return Err(hinted(
            format!("{} is not trusted", path.display()),
            "`cogn trust --list` shows the trusted files",
        ));
    }
    if output.json {
        output.json(&json!({"path": path, "state": TrustState::Unknown}))?;
    } else {
        output.line(format!("no longer trusted: {}", path.display()))?;
    }
    Ok(Exit::Success)
}

fn list(store: &TrustStore, output: &Output) -> Result<Exit> {
    let records = store.records();
    let mut rows = Vec::new();
    for record in &records {
        let state = match fs::read_to_string(&record.path) {
            Ok(text) => json!(store.state(&record.path, &text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => json!("missing"),
            Err(_) => json!("unreadable"),
        };
        rows.push(json!({"path": record.path, "state": state, "sha256": record.sha256}));
    }
    if output.json {
        output.json(&rows)?;
        return Ok(Exit::Success);
    }
    if rows.is_empty() {
        output.note("No file is trusted.");
    }
    for row in &rows {
        let text = |key: &str| row[key].as_str().map(String::from).unwrap_or_default();
        output.line(format!("{:<10} {}", text("state"), text("path")))?;
    }
    Ok(Exit::Success)
}
