//! Starts a process for a request: prepares its folder, its input and its arguments. Files are written off
//! the event loop, and only after the whole request has been validated.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ir::adaptation::{Adaptation, Component, Ledger};
use ir::{Error, ErrorKind, Phase, Request};
use tempfile::TempDir;

use super::input::{CommandInput, Content, input};
use super::options::CommandOptions;
use super::process::{ProcessSpec, RunningProcess};
use super::template::Slot;
use super::template_values::TemplateValues;

/// A started process with its values and adaptations.
#[derive(Debug)]
pub(super) struct Invocation {
    pub(super) running: RunningProcess,
    /// Path of the output file; `None` if the output is on standard output.
    pub(super) output: Option<PathBuf>,
    pub(super) values: TemplateValues,
    pub(super) adaptations: Vec<Adaptation>,
}

pub(super) async fn invoke(options: &Arc<CommandOptions>, request: &Request) -> Result<Invocation, Error> {
    let mut ledger = Ledger::new(Component::Adapter);
    let values = TemplateValues::of(request, options, &mut ledger)?;
    let input = input(request, options)?;
    let shared = options.clone();
    let filling = values.clone();
    let laid_out = tokio::task::spawn_blocking(move || lay_out(&shared, &filling, &input)).await;
    let failed = |why: String| {
        let message = format!("cannot write the input of back-end {}: {why}", options.name);
        Error::new(ErrorKind::Internal, Phase::BeforeSend, message)
    };
    let laid_out = laid_out.map_err(|error| failed(error.to_string()))?;
    let (plan, output) = laid_out.map_err(|error| failed(error.kind().to_string()))?;
    Ok(Invocation {
        running: RunningProcess::start(plan)?,
        output,
        values,
        adaptations: ledger.into_entries(),
    })
}

fn lay_out(
    options: &CommandOptions,
    values: &TemplateValues,
    input: &CommandInput,
) -> io::Result<(ProcessSpec, Option<PathBuf>)> {
    let folder = empty_folder()?;
    let at = |name: &str, extension: &str| folder.path().join(format!("{name}.{extension}"));
    let read = at("input", input.extension);
    write_input(&input.content, &read)?;
    let script = match &options.script {
        Some(text) => {
            let path = at("script", "txt");
            fs::write(&path, text)?;
            Some(path)
        }
        None => None,
    };
    let uses = |slot| options.arguments.uses(slot);
    let extension = values.format.as_deref().unwrap_or("out");
    let output = uses(Slot::Output).then(|| at("output", extension));
    let given = |text: &Option<String>| text.as_ref().map(OsString::from);
    let path = |path: &Path| Some(path.as_os_str().to_owned());
    let arguments = options.arguments.fill(|slot| match slot {
        Slot::Input => path(&read),
        Slot::Output => output.as_deref().and_then(path),
        Slot::Script => script.as_deref().and_then(path),
        Slot::Voice => given(&values.voice),
        Slot::Language => given(&values.language),
        Slot::Format => given(&values.format),
        Slot::Model => given(&values.model),
        Slot::Speed => given(&values.speed),
    });
    let stdin = match uses(Slot::Input) {
        true => None,
        false => Some(File::open(&read)?),
    };
    let mut environment = options.environment.clone();
    environment.push((OsString::from("TMPDIR"), folder.path().as_os_str().to_owned()));
    let plan = ProcessSpec {
        program: options.program.clone(),
        arguments,
        environment,
        stdin,
        timeout: options.timeout,
        output_bytes_max: options.output_bytes_max,
        output: output.clone(),
        memory: options.memory.clone(),
        folder,
    };
    Ok((plan, output))
}

fn write_input(content: &Content, path: &Path) -> io::Result<()> {
    match content {
        Content::Bytes(bytes) => fs::write(path, bytes),
        Content::Handle(held) => io::copy(&mut held.reader(), &mut File::create(path)?).map(drop),
    }
}

/// Opens the program's output file: a regular file within the size limit, not a symbolic link.
pub(super) fn open_output(path: &Path, bytes_max: u64) -> io::Result<impl io::Read + use<>> {
    let facts = fs::symlink_metadata(path)?;
    if !facts.is_file() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    if facts.len() > bytes_max {
        return Err(io::Error::from(io::ErrorKind::FileTooLarge));
    }
    // Reads at most the checked size.
    Ok(io::Read::take(File::open(path)?, facts.len()))
}

/// A folder for one process, readable only by the server's user, because it contains user data.
pub(super) fn empty_folder() -> io::Result<TempDir> {
    tempfile::Builder::new()
        .prefix("cogn-command-")
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir()
}
