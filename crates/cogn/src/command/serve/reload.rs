//! Reload of modules, configuration and certificates while the server runs. Files are polled at an interval
//! and on SIGHUP. A change is read and validated completely before it replaces the old version; an invalid
//! change is logged and not applied. The configuration is replaced as a whole: each request uses one version.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fs, io};

use anyhow::Result;
use engine::EngineConfig;
use engine::port::Clock;
use gateway::{Auth, Gateway, Tls};
use store::Stores;
use tracing::{info, warn};

use crate::backends::{self, BackendName};
use crate::config::{Settings, Sources};
use crate::media;
use crate::modules::Search;
use crate::server_setup;
use crate::wiring::{self, LoadedModules};

/// Limit of polled files over all modules; changes of other files are applied on SIGHUP.
const FILES_MAX: usize = 100_000;
/// Limit of the depth of polled folders.
const DEPTH_MAX: usize = 8;

/// The sources that can change, and the components that are updated.
#[derive(Clone)]
pub(crate) struct Reload {
    pub(crate) search: Search,
    /// The last valid version of each module.
    pub(crate) folders: Arc<Mutex<LoadedModules>>,
    pub(crate) config: Option<PathBuf>,
    pub(crate) backends: Vec<BackendName>,
    pub(crate) listen: SocketAddr,
    pub(crate) gateway: Gateway,
    pub(crate) tls: Option<Tls>,
    /// `None` for MCP over pipes.
    pub(crate) doors: Option<AuthReload>,
    /// The settings at the start; settings that need a restart are compared with them.
    pub(crate) initial_settings: Arc<Settings>,
}

/// The parts that are needed to rebuild authentication.
#[derive(Clone)]
pub(crate) struct AuthReload {
    pub(crate) stores: Stores,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) require_auth: bool,
}

impl AuthReload {
    fn auth(&self, listen: SocketAddr, settings: &Settings) -> Result<Auth> {
        let required = self.require_auth || settings.auth.required;
        server_setup::require_auth_on_public_address(listen, required)?;
        server_setup::auth(&self.stores, &self.clock, settings, required)
    }
}

/// Hashes of the names, sizes and modification times of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileFingerprints {
    modules: u64,
    config: u64,
    tls: u64,
}

impl Reload {
    /// Watches until it is dropped.
    pub(crate) async fn watch(self, every: Duration) {
        let mut hangups = SighupStream::new();
        let mut seen = self.fingerprint();
        loop {
            let told = tokio::select! {
                () = hangups.next() => true,
                () = pause(every) => false,
            };
            let this = self.clone();
            let now = match tokio::task::spawn_blocking(move || this.fingerprint()).await {
                Ok(now) => now,
                Err(error) => {
                    warn!(%error, "scan for changed files failed");
                    continue;
                }
            };
            if !told && now == seen {
                continue;
            }
            // Modules are loaded with their schemas, which are compiled by recursion.
            let this = self.clone();
            let threads = self.gateway.engine().schema_threads();
            match threads.run(move || this.apply(seen, now, told)).await {
                Ok(()) => seen = now,
                Err(_) => warn!("reload failed"),
            }
        }
    }

    fn apply(&self, seen: FileFingerprints, now: FileFingerprints, told: bool) {
        if told || seen.modules != now.modules {
            self.note("modules", self.take_modules());
        }
        if told || seen.config != now.config {
            self.note("configuration", self.take_config());
        }
        if let Some(tls) = &self.tls
            && (told || seen.tls != now.tls)
        {
            self.note("certificate", tls.reload().map_err(anyhow::Error::from));
        }
    }

    fn note(&self, what: &str, outcome: Result<()>) {
        self.gateway.note_reload(outcome.is_ok());
        match outcome {
            Ok(()) => info!(what, "reloaded"),
            Err(error) => warn!(
                what,
                error = format!("{error:#}"),
                "reload failed, keeping the previous version"
            ),
        }
    }

    fn take_modules(&self) -> Result<()> {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        let (now, broken) = wiring::reload_all(&self.search, &folders)?;
        self.gateway.replace_modules(now.modules());
        *folders = now;
        if broken.is_empty() {
            return Ok(());
        }
        anyhow::bail!("{}", broken.join("; "))
    }

    fn take_config(&self) -> Result<()> {
        let merged = Sources::from_environment(self.config.as_deref())?.merge()?;
        // The settings in use were trusted; replacing them by a part of the new file would stop back-ends.
        if let Some(reason) = &merged.outdated_trust {
            anyhow::bail!("{reason}");
        }
        let settings = Settings::of(&merged)?;
        let doors = self.doors.as_ref();
        let auth = doors
            .map(|doors| doors.auth(self.listen, &settings))
            .transpose()?;
        let files = self.gateway.engine().media().run_files().cloned();
        let pipeline = media::for_server(&settings).with_run_files(files);
        let fleet = backends::fleet(&self.backends, self.config.as_deref(), pipeline.store())?;
        // Validation is complete: the following steps cannot fail.
        for name in self.initial_settings.fixed_that_differ(&settings) {
            warn!(setting = name, "takes effect at the next start");
        }
        let engine = |current: &EngineConfig| EngineConfig {
            settings: Arc::new(super::engine_settings(&settings)),
            modules: current.modules.clone(),
            fleet: Arc::new(fleet),
            media: pipeline,
        };
        let (gateway, capacity) = (settings.gateway(self.listen), settings.limits.capacity());
        self.gateway.replace_config(auth, gateway, capacity, engine);
        Ok(())
    }

    fn fingerprint(&self) -> FileFingerprints {
        let mut modules = DefaultHasher::new();
        let mut left = FILES_MAX;
        for root in self.search.roots() {
            hash_dir(root, DEPTH_MAX, &mut left, &mut modules);
        }
        let sources = Sources::from_environment(self.config.as_deref());
        let config = sources.map(|sources| sources.watched()).unwrap_or_default();
        let scripts = self.backends.iter().filter_map(BackendName::script);
        let tls = self.tls.as_ref().map(Tls::files);
        FileFingerprints {
            modules: modules.finish(),
            config: hash_files(config.iter().map(PathBuf::as_path).chain(scripts)),
            tls: hash_files(tls.iter().flatten().copied()),
        }
    }
}

fn hash_files<'a>(files: impl Iterator<Item = &'a Path>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for path in files {
        path.hash(&mut hasher);
        // Follows symbolic links: mounted secrets are replaced by changing a link.
        hash_metadata(fs::metadata(path), &mut hasher);
    }
    hasher.finish()
}

fn hash_dir(folder: &Path, depth: usize, left: &mut usize, hasher: &mut DefaultHasher) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let mut paths: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .take(*left)
        .collect();
    *left -= paths.len();
    paths.sort();
    for path in paths {
        path.hash(hasher);
        let metadata = fs::metadata(&path);
        let is_folder = metadata.as_ref().is_ok_and(fs::Metadata::is_dir);
        hash_metadata(metadata, hasher);
        if is_folder && depth > 0 {
            hash_dir(&path, depth - 1, left, hasher);
        }
    }
}

fn hash_metadata(metadata: io::Result<fs::Metadata>, hasher: &mut DefaultHasher) {
    match metadata {
        Ok(metadata) => {
            metadata.len().hash(hasher);
            metadata.modified().ok().hash(hasher);
        }
        Err(error) => error.kind().hash(hasher),
    }
}

async fn pause(every: Duration) {
    if every.is_zero() {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(every).await;
}

/// SIGHUP, the signal to reload the configuration.
struct SighupStream {
    #[cfg(unix)]
    signal: Option<tokio::signal::unix::Signal>,
}

impl SighupStream {
    #[cfg(unix)]
    fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        Self {
            signal: signal(SignalKind::hangup()).ok(),
        }
    }

    #[cfg(not(unix))]
    fn new() -> Self {
        Self {}
    }

    async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(signal) = &mut self.signal
            && signal.recv().await.is_some()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}
