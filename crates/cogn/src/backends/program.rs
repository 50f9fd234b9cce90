//! A program as a back-end of the configuration: found on this machine, or unavailable with a hint how to
//! install it.

use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ir::operation::Operation;
use providers::CommandUpstream;
use providers::command::MemoryLimit;
use spill::SpillStore;

use super::catalog::{Instance, Unavailable};
use crate::config::{Backend, Preset};

/// The program that sets the memory limit of another one.
const LAUNCHER: &str = "prlimit";

/// A program that was found, and the preset whose check tests whether its dependencies are installed.
#[derive(Clone, Debug)]
pub(crate) struct InstalledProgram {
    pub(crate) command: CommandUpstream,
    preset: Option<&'static Preset>,
}

impl InstalledProgram {
    /// Runs the check of the preset; a program without a preset is not tested.
    pub(crate) async fn trial(&self) -> Result<(), Unavailable> {
        let Some(preset) = self.preset else { return Ok(()) };
        self.command
            .probe(&preset.check)
            .await
            .map_err(|error| Unavailable {
                reason: format!("a dependency of {} is missing: {}", preset.name, error.message),
                hint: Some(preset.install.clone()),
            })
    }
}

pub(super) fn open(backend: &Backend, total_ms: u64, spill: &SpillStore) -> Result<Instance, Unavailable> {
    let preset = backend.preset();
    let program = backend.program()?;
    let operation = backend.operations().into_iter().next();
    let mut options = program.options(&backend.name, operation.unwrap_or(Operation::ChatCompletions))?;
    if let Some(problem) = options.problem() {
        return Err(Unavailable::from(problem));
    }
    let called = program.called();
    options.program = find(Path::new(called)).ok_or_else(|| Unavailable {
        reason: format!("program `{called}` not found (E4001)"),
        hint: Some(preset.map_or_else(
            || String::from("install it, or set its absolute path"),
            |preset| preset.install.clone(),
        )),
    })?;
    if let Some(bytes) = program.memory_bytes_max {
        let launcher = find(Path::new(LAUNCHER)).ok_or_else(|| Unavailable {
            reason: format!("`memory_bytes_max` needs `{LAUNCHER}`, which was not found (E4001)"),
            hint: Some(String::from("install util-linux, or remove `memory_bytes_max`")),
        })?;
        options.memory = Some(MemoryLimit { launcher, bytes });
    }
    options.model.clone_from(&backend.model);
    options.default_model.clone_from(&backend.default_model);
    options.environment = program.environment();
    options.timeout = Duration::from_millis(total_ms);
    options.spill = spill.clone();
    let command = CommandUpstream::new(options);
    Ok(Instance::Program(InstalledProgram { command, preset }))
}

/// Returns a path unchanged; searches a name in the folders of `PATH`.
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
