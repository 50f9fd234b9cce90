//! `cogn run`: one module, one input, one envelope.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use engine::port::{Kind, Rendered};
use engine::run::{self, Options};
use engine::{Engine, Execute, From, Mode, Modules, Ports, Settings, Tenant};
use module::envelope::Envelope;
use serde_json::{Value, json};
use store::memory::MemoryJournal;

use crate::backends::{self, BackendName};
use crate::exit::Exit;
use crate::modules::Search;
use crate::output::Output;
use crate::readable::{LiveFields, print_envelope, print_verdict};
use crate::wiring::{self, SystemClock};

/// Longest input that is read.
const INPUT_BYTES_MAX: u64 = 16 * 1024 * 1024;

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The module: a name or the path of a folder.
    module: String,
    /// The input as a JSON file; `-` reads standard input.
    input: Option<PathBuf>,
    /// Free text instead of a JSON input.
    #[arg(
        long,
        value_name = "TEXT",
        conflicts_with = "input",
        allow_hyphen_values = true
    )]
    args: Option<String>,
    /// Show the answer while it is written; with --json one chunk per line.
    #[arg(long)]
    stream: bool,
    /// Who is asked: a name from the configuration, or scripted:FILE.yaml. Given several times, the next
    /// one takes over when one fails.
    #[arg(long, value_name = "BACKEND")]
    backend: Vec<BackendName>,
    /// Use this file in place of the project's cogn.toml.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Run {
    pub(crate) fn run(self, search: &Search, output: &Output) -> Result<Exit> {
        let module = Arc::new(wiring::load_module(&search.find(&self.module)?.path)?);
        let input = self.input()?;
        let ports = Ports {
            fleet: Arc::new(backends::fleet(&self.backend, self.config.as_deref())?),
            // Nobody can come back to this run once the command has ended.
            journal: Arc::new(MemoryJournal::default()),
            clock: Arc::new(SystemClock::default()),
        };
        let engine = Engine::new(ports, Settings::default(), Modules::default());
        let mode = if self.stream { Mode::Stream } else { Mode::Sync };
        let execute = Execute {
            module,
            input,
            mode,
            options: Options::default(),
            warnings: Vec::new(),
        };
        let last = wiring::small_runtime()?.block_on(answer(&engine, execute, output))?;
        let envelope = last.envelope();
        match (mode, output.json) {
            (Mode::Stream, true) => last.print_if_unsaid(output)?,
            (Mode::Sync, true) => output.json(&envelope)?,
            (Mode::Stream, false) => print_verdict(output, &envelope)?,
            (Mode::Sync, false) => print_envelope(output, &envelope)?,
        }
        let good = envelope.get("ok") == Some(&Value::Bool(true));
        Ok(if good { Exit::Good } else { Exit::No })
    }

    fn input(&self) -> Result<Value> {
        if let Some(text) = &self.args {
            return Ok(json!({"$ARGUMENTS": text, "query": text}));
        }
        let Some(path) = &self.input else {
            return Ok(json!({}));
        };
        let shown = path.display();
        let mut bytes = Vec::new();
        let read = if path.as_os_str() == "-" {
            io::stdin()
                .lock()
                .take(INPUT_BYTES_MAX + 1)
                .read_to_end(&mut bytes)
        } else {
            std::fs::File::open(path).and_then(|file| file.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes))
        };
        let length = read.with_context(|| format!("cannot read the input {shown}"))?;
        if length as u64 > INPUT_BYTES_MAX {
            anyhow::bail!("the input {shown} exceeds {INPUT_BYTES_MAX} bytes (E1005)");
        }
        serde_json::from_slice(&bytes).with_context(|| format!("the input {shown} is not JSON"))
    }
}

/// How a run ended: with its own last event, or before it began.
enum Last {
    Event(Rendered),
    Refused(Value),
}

impl Last {
    fn envelope(&self) -> Value {
        match self {
            Self::Event(event) => run::envelope(event),
            Self::Refused(envelope) => envelope.clone(),
        }
    }

    /// A refused run has printed no chunk, so its envelope is the only line.
    fn print_if_unsaid(&self, output: &Output) -> Result<()> {
        if let Self::Refused(envelope) = self {
            output.line(envelope.to_string())?;
        }
        Ok(())
    }
}

/// Runs to the end, printing on the way what was asked for.
async fn answer(engine: &Engine, execute: Execute, output: &Output) -> Result<Last> {
    let mode = execute.mode;
    let tenant = Tenant::local();
    let run = match engine.start(&tenant, execute).await {
        Ok(run) => run,
        Err(error @ engine::Error::Input(_)) => {
            return Ok(Last::Refused(Envelope::failure(error.into_body()).into_value()));
        }
        Err(error) => return Err(error.into()),
    };
    let mut subscription = engine.subscribe(&tenant, run, From::Start).await?;
    if mode == Mode::Sync {
        return Ok(Last::Event(subscription.last().await?));
    }
    let mut fields = LiveFields::default();
    while let Some(events) = subscription.next().await? {
        for event in &events {
            if output.json {
                output.line(&*event.body)?;
            } else if event.kind == Kind::Chunk {
                fields.show(output, &event.body)?;
            }
        }
        output.stdout().flush()?;
        if let Some(last) = events.into_iter().find(|event| event.kind.is_terminal()) {
            fields.end(output)?;
            return Ok(Last::Event(last));
        }
    }
    Err(engine::Error::Lost(run).into())
}
