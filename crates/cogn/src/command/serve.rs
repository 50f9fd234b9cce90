//! `cogn serve`: the modules over HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use engine::port::Clock;
use engine::{Engine, Ports, Settings};
use gateway::Gateway;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::Level;

use crate::access;
use crate::backends::{self, BackendName};
use crate::config::{self, Sources};
use crate::exit::Exit;
use crate::modules::Search;
use crate::output::Output;
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
    /// Answer only to those who show a key or a token.
    #[arg(long)]
    require_auth: bool,
    /// Use this file in place of the project's cogn.toml.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Serve {
    pub(crate) fn run(self, search: &Search, output: &Output) -> Result<Exit> {
        let settings = config::Settings::of(&Sources::from_environment(self.config.as_deref())?.merge()?)?;
        let required = self.require_auth || settings.auth.required;
        access::refuse_open_door(self.listen, required)?;
        let level = if output.quiet { Level::WARN } else { Level::INFO };
        tracing_subscriber::fmt()
            .with_max_level(level)
            .with_writer(std::io::stderr)
            .init();
        let fleet = Arc::new(backends::fleet(&self.backend, self.config.as_deref())?);
        let modules = wiring::load_all(search, output)?;
        let path = access::journal_path(self.journal)?;
        wiring::server_runtime()?.block_on(async {
            let journal = access::open_journal(&path, settings.journal.bytes_max).await?;
            let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
            let ports = Ports {
                fleet,
                journal: journal.clone(),
                clock: clock.clone(),
            };
            let engine = Arc::new(Engine::new(ports, Settings::default(), modules));
            let listener = TcpListener::bind(self.listen)
                .await
                .with_context(|| format!("cannot listen on {}", self.listen))?;
            engine.recover().await.context("cannot pick up unfinished runs")?;
            announce(output, listener.local_addr()?)?;
            let gateway = Gateway::new(engine, gateway::Settings::default());
            let gateway = access::guard(gateway, &journal, &clock, &settings, required)?;
            let swept = CancellationToken::new();
            let janitor = access::janitor(&journal, &clock, &settings).work(swept.clone());
            let serve = async {
                let served = gateway::serve(listener, None, gateway, stop_signal()).await;
                swept.cancel();
                served
            };
            let (served, ()) = tokio::join!(serve, janitor);
            served?;
            journal.close().await;
            Ok(Exit::Good)
        })
    }
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
