//! What a starting server prints: its address on stdout, for scripts that use port 0, and for people the modules,
//! the back-ends, the address of the documents and the data folder on stderr.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;
use engine::Engine;
use serde_json::json;
use store::StoreUrl;
use tracing::info;

use crate::config::{LogFormat, Server};
use crate::data_folder::DataFolder;
use crate::output::Output;

/// Names in one line; the rest is counted.
const NAMES_MAX: usize = 8;

#[derive(Debug)]
pub(super) struct Banner {
    url: String,
    modules: Vec<String>,
    /// Each with its model, or with the reason why it cannot be called.
    backends: Vec<String>,
    /// The folder of the journal and of the project to which it belongs.
    data: PathBuf,
    project: Option<PathBuf>,
    log: LogFormat,
}

impl Banner {
    pub(super) fn new(engine: &Engine, store: &StoreUrl, address: SocketAddr, server: &Server) -> Self {
        let StoreUrl::Sqlite(journal) = store;
        let journal = std::path::absolute(journal).unwrap_or_else(|_| journal.to_path_buf());
        let scheme = if server.tls.is_some() { "https" } else { "http" };
        let mut backends: Vec<String> = Vec::new();
        for candidate in engine.fleet().candidates() {
            let about = match (&candidate.unavailable, &candidate.model) {
                (Some(reason), _) => format!("{} (unavailable: {reason})", candidate.name),
                (None, Some(model)) => format!("{} ({model})", candidate.name),
                (None, None) => candidate.name.clone(),
            };
            // A back-end has one candidate for each of its keys.
            if !backends.contains(&about) {
                backends.push(about);
            }
        }
        Self {
            url: format!("{scheme}://{address}"),
            modules: engine
                .modules()
                .iter()
                .map(|(name, _)| String::from(name))
                .collect(),
            backends,
            data: journal.parent().unwrap_or(&journal).to_path_buf(),
            project: DataFolder::owner_of(&journal),
            log: server.log,
        }
    }

    /// With a log in JSON, every line on stderr is an event of the log.
    pub(super) fn print(&self, output: &Output) -> Result<()> {
        let url = &self.url;
        let docs = format!("{url}/docs");
        if self.log == LogFormat::Json {
            let (modules, backends) = (listed(&self.modules), listed(&self.backends));
            let data_folder = self.data.display();
            info!(url, modules, backends, docs, %data_folder, "server started");
        }
        if output.json {
            let line = json!({
                "listening": url,
                "modules": self.modules,
                "backends": self.backends,
                "docs": docs,
                "data_folder": self.data,
            });
            output.line(line.to_string())?;
            return Ok(());
        }
        output.line(format!("listening on {url}"))?;
        if self.log == LogFormat::Json {
            return Ok(());
        }
        let project = self.project.as_ref();
        let project = project.map(|project| format!(" (of the project {})", project.display()));
        output.note(format!("modules      {}", listed(&self.modules)));
        output.note(format!("back-ends    {}", listed(&self.backends)));
        output.note(format!("documents    {docs}"));
        output.note(format!(
            "data folder  {}{}",
            self.data.display(),
            project.unwrap_or_default()
        ));
        Ok(())
    }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        return String::from("none");
    }
    let shown = names
        .iter()
        .take(NAMES_MAX)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
