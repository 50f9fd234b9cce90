//! A program as a back-end of the configuration: found on this machine, or unavailable with the way to get it.

use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::Depot;
use ir::operation::Operation;
use providers::CommandUpstream;
use providers::command::MemoryLimit;

use super::catalog::{Instance, Unavailable};
use crate::config::{Backend, Preset};

/// What holds a program to a bound on its memory.
const LAUNCHER: &str = "prlimit";

/// A program that is here, and how to tell whether everything that it needs is.
#[derive(Clone, Debug)]
pub(crate) struct InstalledProgram {
    pub(crate) command: CommandUpstream,
    recipe: Option<&'static Preset>,
}

impl InstalledProgram {
    /// Why it would fail, if a trial says so. Only recipes know how to try.
    pub(crate) async fn trial(&self) -> Result<(), Unavailable> {
        let Some(recipe) = self.recipe else { return Ok(()) };
        self.command
            .probe(&recipe.check)
            .await
            .map_err(|error| Unavailable {
                reason: format!(
                    "something that {} needs is missing: {}",
                    recipe.name, error.message
                ),
                hint: Some(recipe.install.clone()),
            })
    }
}

pub(super) fn open(backend: &Backend, total_ms: u64, depot: &Depot) -> Result<Instance, Unavailable> {
    let recipe = backend.recipe();
    let program = backend.program()?;
    let operation = backend.operations().into_iter().next();
    let mut options = program.options(&backend.name, operation.unwrap_or(Operation::ChatCompletions))?;
    if let Some(problem) = options.problem() {
        return Err(Unavailable::from(problem));
    }
    let called = program.called();
    options.program = find(Path::new(called)).ok_or_else(|| Unavailable {
        reason: format!("the program `{called}` is not on this machine (E4001)"),
        hint: Some(recipe.map_or_else(
            || String::from("install it, or write its whole path"),
            |recipe| recipe.install.clone(),
        )),
    })?;
    if let Some(bytes) = program.memory_bytes_max {
        let launcher = find(Path::new(LAUNCHER)).ok_or_else(|| Unavailable {
            reason: format!("`memory_bytes_max` needs `{LAUNCHER}`, which is not on this machine (E4001)"),
            hint: Some(String::from("install util-linux, or take the bound away")),
        })?;
        options.memory = Some(MemoryLimit { launcher, bytes });
    }
    options.model.clone_from(&backend.model);
    options.default_model.clone_from(&backend.default_model);
    options.environment = program.environment();
    options.timeout = Duration::from_millis(total_ms);
    options.depot = depot.clone();
    let command = CommandUpstream::new(options);
    Ok(Instance::Program(InstalledProgram { command, recipe }))
}

/// A path as it is; a name in the folders of `PATH`.
fn find(program: &Path) -> Option<PathBuf> {
    let executable = |path: &PathBuf| {
        let facts = path.metadata();
        facts.is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
    };
    if program.components().count() > 1 {
        let path = program.to_path_buf();
        return Some(path).filter(executable);
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(executable)
}
