//! `cogn mcp`: the modules as tools of the MCP host that started this process. Standard output carries only
//! the protocol; logs go to standard error.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use engine::port::{Archive, Clock};
use engine::retention::{Janitor, RetentionPolicy};
use engine::{Engine, MediaPipeline, Ports};
use gateway::Gateway;
use store::memory::MemoryJournal;
use tokio_util::sync::CancellationToken;

use super::serve::reload::Reload;
use super::serve::{engine_settings, log, stop_signal};
use crate::backends::{self, BackendName};
use crate::config::{Settings, Sources};
use crate::exit::Exit;
use crate::media;
use crate::modules::Search;
use crate::output::Output;
use crate::wiring::{self, LoadedModules, SystemClock};

/// Retention of ended runs. Short, because they are not resumed after the host got the result.
const KEEP_MS: u64 = 60_000;
/// Size limit of all retained runs.
const KEEP_BYTES_MAX: u64 = 64 * 1024 * 1024;

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// The back-end to call: a name from the configuration, or scripted:FILE.yaml. May be given several
    /// times; if one fails, the next one is called.
    #[arg(long, value_name = "BACKEND")]
    backend: Vec<BackendName>,
    /// Use this file instead of the project's cogn.toml.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Mcp {
    pub(crate) fn run(self, search: &Search, output: &Output) -> Result<Exit> {
        let settings = Settings::of(&Sources::from_environment(self.config.as_deref())?.merge()?)?;
        log::start(settings.server.log, output.quiet);
        let pipeline = media::for_server(&settings);
        let fleet = backends::fleet(&self.backend, self.config.as_deref(), pipeline.store())?;
        let fleet = Arc::new(fleet);
        let folders = wiring::load_all(search, output)?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let journal = Arc::new(MemoryJournal::default());
        let keep = RetentionPolicy {
            runs_ms: KEEP_MS,
            bytes_max: KEEP_BYTES_MAX,
            usage_ms: KEEP_MS,
        };
        let archive: Arc<dyn Archive> = journal.clone();
        let janitor = Janitor::new(archive.clone(), clock.clone(), keep);
        let ports = Ports {
            fleet,
            journal,
            clock,
        };
        let runtime = wiring::server_runtime()?;
        let served = runtime.block_on(self.serve_host(
            search,
            settings,
            (ports, folders, pipeline),
            (archive, janitor),
        ));
        // A blocking read of standard input cannot be interrupted, so the runtime does not wait for it.
        runtime.shutdown_background();
        served.context("the connection to the MCP host failed")?;
        Ok(Exit::Success)
    }

    async fn serve_host(
        self,
        search: &Search,
        settings: Settings,
        (ports, folders, pipeline): (Ports, LoadedModules, MediaPipeline),
        (archive, janitor): (Arc<dyn Archive>, Janitor),
    ) -> io::Result<()> {
        let engine = Engine::new(ports, engine_settings(&settings), folders.modules()).with_media(pipeline);
        // There is no listener; settings that depend on the listen address have no effect.
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let gateway = Gateway::new(engine, archive, settings.gateway(nowhere));
        let gateway = gateway.with_capacity(settings.limits.capacity());
        let reload = Reload {
            search: search.clone(),
            folders: Arc::new(Mutex::new(folders)),
            config: self.config,
            backends: self.backend,
            listen: nowhere,
            gateway: gateway.clone(),
            tls: None,
            doors: None,
            initial_settings: Arc::new(settings.clone()),
        };
        let stop = CancellationToken::new();
        let talk = gateway::speak_mcp(gateway, pipe(&io::stdin())?, pipe(&io::stdout())?, stop.clone());
        let mut talk = std::pin::pin!(talk);
        tokio::select! {
            served = &mut talk => return served,
            () = reload.watch(Duration::from_millis(settings.server.reload_ms)) => {}
            () = janitor.run(stop.clone()) => {}
            () = stop_signal() => {}
        }
        stop.cancel();
        talk.await
    }
}

/// A standard stream as an asynchronous file, without the buffer of the standard library.
#[cfg(unix)]
fn pipe(stream: &impl std::os::fd::AsFd) -> io::Result<tokio::fs::File> {
    let own = stream.as_fd().try_clone_to_owned()?;
    Ok(tokio::fs::File::from_std(own.into()))
}

#[cfg(windows)]
fn pipe(stream: &impl std::os::windows::io::AsHandle) -> io::Result<tokio::fs::File> {
    let own = stream.as_handle().try_clone_to_owned()?;
    Ok(tokio::fs::File::from_std(own.into()))
}
