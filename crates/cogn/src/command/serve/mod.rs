//! `cogn serve`: serves the modules over HTTP.

mod banner;
pub(crate) mod log;
pub(crate) mod reload;
mod traces;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use engine::port::Clock;
use engine::{Engine, Ports};
use gateway::{Gateway, Tls};
use spill::RunFiles;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::banner::Banner;
use self::reload::{AuthReload, Reload};
use crate::backends::{self, BackendName};
use crate::config::{Server, Settings, Sources};
use crate::exit::Exit;
use crate::gates;
use crate::media;
use crate::modules::Search;
use crate::open_files;
use crate::output::Output;
use crate::server_setup;
use crate::wiring::{self, SystemClock};

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The address to listen on; port 0 takes any free port. Default: the configured address, or
    /// 127.0.0.1:8787.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// The journal file, which stores runs and their events.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// The back-end to call: a name from the configuration, or scripted:FILE.yaml. May be given several
    /// times; if one fails, the next one is called.
    #[arg(long, value_name = "BACKEND")]
    backend: Vec<BackendName>,
    /// Require callers to authenticate with a key or a token.
    #[arg(long)]
    require_auth: bool,
    /// Use this file instead of the project's cogn.toml.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Serve {
    pub(crate) fn run(self, search: &Search, output: &Output) -> Result<Exit> {
        let settings = Settings::of(&Sources::from_environment(self.config.as_deref())?.merge()?)?;
        let server = &settings.server;
        let listen = self.listen.unwrap_or(server.listen);
        let required = self.require_auth || settings.auth.required;
        server_setup::require_auth_on_public_address(listen, required)?;
        log::start(server.log, output.quiet);
        let open_files_max = open_files::raise_limit();
        let tls = load_tls(server)?;
        let pipeline = media::for_server(&settings);
        let fleet = backends::fleet(&self.backend, self.config.as_deref(), pipeline.store())?;
        let folders = wiring::load_all(search, output)?;
        let store = server_setup::store_settings(self.journal, &settings)?;
        wiring::server_runtime()?.block_on(async {
            let stores = store::open(&store).await?;
            let _lock = server_setup::lock_stores(&stores)?;
            let clock: Arc<dyn Clock> = Arc::new(SystemClock);
            let ports = Ports {
                fleet: Arc::new(fleet),
                journal: stores.journal.clone(),
                clock: clock.clone(),
            };
            let files = RunFiles::new(stores.media_folder(), settings.media.store_max);
            let engine = Engine::new(ports, engine_settings(&settings), folders.modules());
            let engine = engine.with_media(pipeline.with_run_files(Some(files)));
            let listener = bind(listen).await?;
            engine.recover().await.context("cannot recover unfinished runs")?;
            let stop = stop_signal();
            Banner::new(&engine, &store.url, listener.local_addr()?, server).print(output)?;
            let mut gateway_settings = settings.gateway(listen);
            open_files::clamp_connections(&mut gateway_settings, open_files_max);
            let gateway = Gateway::new(engine.clone(), stores.archive.clone(), gateway_settings);
            let gateway = server_setup::configure_gateway(gateway, &stores, &clock, &settings, required)?;
            let swept = CancellationToken::new();
            let exporter = traces::Exporter::of(&settings, &engine)?;
            let exporting = async {
                if let Some(exporter) = exporter {
                    exporter.work(swept.clone()).await;
                }
            };
            let janitor = server_setup::retention_task(&stores, &clock, &settings).run(swept.clone());
            let reload = Reload {
                search: search.clone(),
                folders: Arc::new(Mutex::new(folders)),
                config: self.config,
                backends: self.backend,
                listen,
                gateway: gateway.clone(),
                tls: tls.clone(),
                doors: Some(AuthReload {
                    stores: stores.clone(),
                    clock: clock.clone(),
                    require_auth: self.require_auth,
                }),
                initial_settings: Arc::new(settings.clone()),
            };
            let serve = async {
                let served = tokio::select! {
                    served = gateway::serve(listener, tls, gateway, stop) => served,
                    () = reload.watch(Duration::from_millis(server.reload_ms)) => Ok(()),
                };
                swept.cancel();
                served
            };
            let (served, (), ()) = tokio::join!(serve, janitor, exporting);
            served?;
            stores.close().await;
            Ok(Exit::Success)
        })
    }
}

fn load_tls(server: &Server) -> Result<Option<Tls>> {
    let tls = server.tls.as_ref();
    let tls = tls.map(|files| Tls::load(&files.certificate, &files.key));
    tls.transpose().context("cannot serve TLS")
}

async fn bind(listen: SocketAddr) -> Result<TcpListener> {
    let bound = TcpListener::bind(listen).await;
    bound.with_context(|| format!("cannot listen on {listen}"))
}

pub(crate) fn engine_settings(settings: &Settings) -> engine::Settings {
    engine::Settings {
        gates: gates::rules(&settings.gate),
        resume_grace_ms: settings.server.resume_grace_ms,
        ..engine::Settings::default()
    }
}

/// Completes on the first SIGINT or SIGTERM. The handlers are installed by this call, not by the first poll.
pub(crate) fn stop_signal() -> impl Future<Output = ()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{Signal, SignalKind, signal};
        let [interrupt, terminate] = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
        let received = async |signal: std::io::Result<Signal>| match signal {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        };
        async move {
            tokio::select! {
                () = received(interrupt) => {}
                () = received(terminate) => {}
            }
        }
    }
    #[cfg(not(unix))]
    async {
        tokio::signal::ctrl_c().await.ok();
    }
}
