//! `cogn run`: one module, one input, one envelope.

mod answer;
mod input;
mod trace;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use engine::run::Options;
use engine::{Engine, Execute, Mode, Ports, Settings};
use serde_json::Value;
use store::memory::MemoryJournal;

use self::answer::{Last, answer};
use self::input::InputFlags;
pub(crate) use self::input::read_file;
use self::trace::Trace;
use crate::atomic;
use crate::backends::{self, BackendName};
use crate::duration::Duration;
use crate::exit::Exit;
use crate::gates;
use crate::modules::{Library, Search};
use crate::output::Output;
use crate::readable::{print_envelope, print_verdict};
use crate::wiring::{self, SystemClock};

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The module: a name or the path of a folder.
    module: String,
    #[command(flatten)]
    input: InputFlags,
    /// Show the answer while it is written; with --json one chunk per line.
    #[arg(long)]
    stream: bool,
    #[command(flatten)]
    asked: Asked,
    /// Give up after this time (500ms, 30s, 2m).
    #[arg(long, value_name = "TIME")]
    timeout: Option<Duration>,
    /// Write how the run went into this file, as JSON: attempts, events, times.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write the envelope into this file, as JSON; it is there whole or not at all.
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Who is asked: the same flags wherever a model is.
#[derive(Clone, Debug, Args)]
pub(crate) struct Asked {
    /// Who is asked: a name from the configuration, or scripted:FILE.yaml. Given several times, the next
    /// one takes over when one fails.
    #[arg(long, value_name = "BACKEND")]
    pub(crate) backend: Vec<BackendName>,
    /// The model to ask for, where a back-end is not bound to one.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Use this file in place of the project's cogn.toml.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

impl Run {
    pub(crate) fn run(&self, search: &Search, output: &Output) -> Result<Exit> {
        let found = search.find(&self.module)?;
        let module = Arc::new(wiring::load_module(&found.path)?);
        let modules = Library::around(search, &found.path).reachable(&module);
        let input = self.input.read(&module)?;
        let settings = Settings {
            gates: gates::configured(&self.asked.backend, self.asked.config.as_deref())?,
            ..Settings::default()
        };
        let ports = Ports {
            fleet: Arc::new(backends::fleet(
                &self.asked.backend,
                self.asked.config.as_deref(),
            )?),
            // Nobody can come back to this run once the command has ended.
            journal: Arc::new(MemoryJournal::default()),
            clock: Arc::new(SystemClock::default()),
        };
        let mut trace = self.trace.is_some().then(|| Trace::new(module.name()));
        let engine = Engine::new(ports, settings, modules);
        let mode = if self.stream { Mode::Stream } else { Mode::Sync };
        let execute = Execute {
            module,
            input,
            mode,
            options: Options {
                model: self.asked.model.clone(),
                timeout_ms: self.timeout.map(Duration::as_millis),
                ..Options::default()
            },
            warnings: Vec::new(),
        };
        let running = answer(&engine, execute, output, trace.as_mut());
        let last = wiring::small_runtime()?.block_on(running)?;
        let envelope = last.envelope();
        if let (Some(path), Some(trace)) = (&self.trace, trace) {
            atomic::write_json(path, &trace.finish(&envelope))?;
        }
        self.show(&last, &envelope, output)?;
        let good = envelope.get("ok") == Some(&Value::Bool(true));
        Ok(if good { Exit::Good } else { Exit::No })
    }

    fn show(&self, last: &Last, envelope: &Value, output: &Output) -> Result<()> {
        if let Some(path) = &self.output {
            atomic::write_json(path, envelope)?;
        }
        match (self.stream, output.json, &self.output) {
            (true, true, _) => last.print_if_unsaid(output)?,
            (false, true, None) => output.json(envelope)?,
            // The file has it.
            (false, true, Some(_)) => {}
            (true, false, _) | (false, false, Some(_)) => print_verdict(output, envelope)?,
            (false, false, None) => print_envelope(output, envelope)?,
        }
        Ok(())
    }
}
