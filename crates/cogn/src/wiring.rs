//! The composition root: the one place that knows every adapter and hands them to the engine. Nothing
//! here decides anything about a run.

use std::hash::{BuildHasher, RandomState};
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

/// One module, whole enough to be run.
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
                format!("`cogn validate {}` shows all that is wrong", path.display()),
            ))
        }
    }
}

/// The modules that folders hold, by the folders' names and in the order of the search. A broken manifest does not say
/// whose it is; its folder does.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoadedModules(Vec<(String, Arc<Module>)>);

impl LoadedModules {
    /// By the names that the modules have.
    pub(crate) fn modules(&self) -> Modules {
        let named = |module: &Arc<Module>| (String::from(module.name()), module.clone());
        self.0.iter().map(|(_, module)| named(module)).collect()
    }

    fn get(&self, folder: &str) -> Option<&Arc<Module>> {
        let (_, module) = self.0.iter().find(|(name, _)| name == folder)?;
        Some(module)
    }
}

/// Every module that can be found and run. A broken one is named and left out: the others still serve.
pub(crate) fn load_all(search: &Search, output: &Output) -> Result<LoadedModules> {
    let mut folders = Vec::new();
    for found in search.all()? {
        if found.shadowed_by.is_some() {
            continue;
        }
        match load_module(&found.path) {
            Ok(module) => folders.push((found.name, Arc::new(module))),
            Err(error) => output.note(format!("left out: {error}")),
        }
    }
    Ok(LoadedModules(folders))
}

/// The modules as they are now. One that has become broken stays as it was and is named; so is one that
/// never was good, and is left out.
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
                broken.push(format!("{error:#}; its last good state stays"));
                folders.push((found.name, module.clone()));
            }
            (Err(error), None) => broken.push(format!("{error:#}; it is left out")),
        }
    }
    Ok((LoadedModules(folders), broken))
}

/// A runtime for a command that waits for one thing.
pub(crate) fn current_thread_runtime() -> Result<Runtime> {
    let built = Builder::new_current_thread().enable_all().build();
    built.context("cannot start the runtime")
}

/// How many tasks a server works on before it looks who else has something to say. Looking sooner breaks up those who
/// go on together; whoever comes meanwhile would have to stand behind the same tasks anyway.
const EVENT_INTERVAL: u32 = 512;

/// A runtime for a server.
pub(crate) fn server_runtime() -> Result<Runtime> {
    let built = Builder::new_multi_thread()
        .enable_all()
        .event_interval(EVENT_INTERVAL)
        .build();
    built.context("cannot start the runtime")
}

/// The machine's own clock, and dice seeded by the operating system.
#[derive(Debug, Default)]
pub(crate) struct SystemClock {
    dice: RandomState,
    more: RandomState,
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the Clock")]
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// A keyed hash of a count under keys that the operating system chose: without the keys, the next
    /// value cannot be told from those before it.
    fn random(&self) -> u128 {
        static THROWN: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let count = THROWN.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let high = u128::from(self.dice.hash_one(count));
        high << 64 | u128::from(self.more.hash_one(count))
    }
}
