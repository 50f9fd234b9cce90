//! The composition root: connects the adapters with the engine. No decisions about runs are made here.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use engine::Modules;
use engine::port::Clock;
use module::Module;
use module::check::check_runnable;
use tokio::runtime::{Builder, Runtime};

use crate::modules::{Search, read_folder};
use crate::output::{Output, hinted};

/// Loads a module; fails if it has errors that prevent a run.
pub(crate) fn load_module(path: &Path) -> Result<Module> {
    let loaded = check_runnable(&read_folder(path)?);
    let first = loaded
        .report
        .iter()
        .find(|diagnostic| diagnostic.severity == module::Severity::Error);
    match (loaded.module, first) {
        (Some(module), None) => Ok(module),
        (_, first) => {
            let why = first.map_or_else(String::new, |diagnostic| format!(": {}", diagnostic.message));
            Err(hinted(
                format!("the module at {} cannot be run{why}", path.display()),
                format!("`cogn validate {}` shows all problems", path.display()),
            ))
        }
    }
}

/// The modules by folder name, in search order. The folder name is used because a module with a broken
/// manifest has no name.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoadedModules(Vec<(String, Arc<Module>)>);

impl LoadedModules {
    /// The modules by module name.
    pub(crate) fn modules(&self) -> Modules {
        let named = |module: &Arc<Module>| (String::from(module.name()), module.clone());
        self.0.iter().map(|(_, module)| named(module)).collect()
    }

    fn get(&self, folder: &str) -> Option<&Arc<Module>> {
        let (_, module) = self.0.iter().find(|(name, _)| name == folder)?;
        Some(module)
    }
}

/// Loads all modules that can be run. A broken one is reported and skipped.
pub(crate) fn load_all(search: &Search, output: &Output) -> Result<LoadedModules> {
    let mut folders = Vec::new();
    for found in search.all()? {
        if found.shadowed_by.is_some() {
            continue;
        }
        match load_module(&found.path) {
            Ok(module) => folders.push((found.name, Arc::new(module))),
            Err(error) => output.note(format!("module skipped: {error}")),
        }
    }
    Ok(LoadedModules(folders))
}

/// Reloads all modules. A module that has become invalid keeps its previous version; a new invalid one is
/// skipped. Both are reported.
pub(crate) fn reload_all(search: &Search, old: &LoadedModules) -> Result<(LoadedModules, Vec<String>)> {
    let mut folders = Vec::new();
    let mut broken = Vec::new();
    for found in search.all()? {
        if found.shadowed_by.is_some() {
            continue;
        }
        match (load_module(&found.path), old.get(&found.name)) {
            (Ok(module), _) => folders.push((found.name, Arc::new(module))),
            (Err(error), Some(module)) => {
                broken.push(format!("{error:#}; keeping the previous version"));
                folders.push((found.name, module.clone()));
            }
            (Err(error), None) => broken.push(format!("{error:#}; module skipped")),
        }
    }
    Ok((LoadedModules(folders), broken))
}

/// A single-threaded runtime for a command.
pub(crate) fn current_thread_runtime() -> Result<Runtime> {
    let built = Builder::new_current_thread().enable_all().build();
    built.context("cannot start the runtime")
}

/// A runtime for a server.
pub(crate) fn server_runtime() -> Result<Runtime> {
    let built = Builder::new_multi_thread().enable_all().build();
    built.context("cannot start the runtime")
}

/// The system clock, and random numbers of the operating system.
#[derive(Debug, Default)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the Clock")]
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// Aborts if the operating system has no random numbers: the id of a run must not be predictable, because
    /// who knows it can read the run. The standard library's hash maps abort in the same case.
    fn random(&self) -> u128 {
        let mut bytes = [0; 16];
        match getrandom::fill(&mut bytes) {
            Ok(()) => u128::from_ne_bytes(bytes),
            Err(_) => std::process::abort(),
        }
    }
}
