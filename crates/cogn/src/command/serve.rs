//! `cogn serve`: the modules over HTTP.

use std::env;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use engine::{Engine, Ports, Settings};
use gateway::Gateway;
use serde_json::json;
use store::sqlite::SqliteJournal;
use tokio::net::TcpListener;
use tracing::Level;

use crate::backends::{self, BackendName};
use crate::exit::Exit;
use crate::modules::Search;
use crate::output::{Output, hinted};
use crate::wiring::{self, SystemClock};

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where to listen; port 0 takes any free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8787")]
    listen: SocketAddr,
    /// The file that keeps runs and their events.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Who is asked: a name from the configuration, or scripted:FILE.yaml. Given several times, the next
    /// one takes over when one fails.
    #[arg(long, value_name = "BACKEND")]
    backend: Vec<BackendName>,
    /// Use this file in place of the project's cogn.toml.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Serve {
    pub(crate) fn run(self, search: &Search, output: &Output) -> Result<Exit> {
        if !self.listen.ip().is_loopback() {
            return Err(hinted(
                format!(
                    "{} can be reached from outside, and there is no authentication",
                    self.listen
                ),
                "listen on 127.0.0.1 and put a proxy that authenticates in front",
            ));
        }
        let level = if output.quiet { Level::WARN } else { Level::INFO };
        tracing_subscriber::fmt()
            .with_max_level(level)
            .with_writer(std::io::stderr)
            .init();
        let fleet = Arc::new(backends::fleet(&self.backend, self.config.as_deref())?);
        let modules = wiring::load_all(search, output)?;
        let path = match self.journal {
            Some(path) => path,
            None => default_journal()?,
        };
        wiring::server_runtime()?.block_on(async {
            let journal = open_journal(&path).await?;
            let ports = Ports {
                fleet,
                journal: journal.clone(),
                clock: Arc::new(SystemClock::default()),
            };
            let engine = Arc::new(Engine::new(ports, Settings::default(), modules));
            let listener = TcpListener::bind(self.listen)
                .await
                .with_context(|| format!("cannot listen on {}", self.listen))?;
            engine.recover().await.context("cannot pick up unfinished runs")?;
            announce(output, listener.local_addr()?)?;
            let gateway = Gateway::new(engine, gateway::Settings::default());
            gateway::serve(listener, None, gateway, stop_signal()).await?;
            journal.close().await;
            Ok(Exit::Good)
        })
    }
}

async fn open_journal(path: &Path) -> Result<Arc<SqliteJournal>> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let journal = SqliteJournal::open(path).await;
    let journal = journal.with_context(|| format!("cannot open the journal {}", path.display()))?;
    Ok(Arc::new(journal))
}

fn default_journal() -> Result<PathBuf> {
    let home = env::home_dir().ok_or_else(|| {
        hinted(
            "there is no home folder to keep the journal in",
            "--journal FILE names another place",
        )
    })?;
    Ok(home.join(".local/state/cogn/journal.db"))
}

/// The address on stdout is for scripts that asked for port 0.
fn announce(output: &Output, address: SocketAddr) -> Result<()> {
    let url = format!("http://{address}");
    if output.json {
        output.line(json!({"listening": url}).to_string())?;
    } else {
        output.line(format!("listening on {url}"))?;
    }
    Ok(())
}

/// Completes when the process is asked to end. A second request is the operating system's to grant.
async fn stop_signal() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = interrupt => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    interrupt.await.ok();
}
