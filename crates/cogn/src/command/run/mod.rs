//! `cogn run`: one module, one input, one envelope.

mod answer;
mod batch;
mod generation;
mod input;
mod progress;
mod trace;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use engine::run::RunOptions;
use engine::{Admission, RunMode, RunRequest};
use ir::GenerationOptions;
use module::Module;
use serde_json::Value;
use sha2::{Digest, Sha256};

use self::answer::{RunEnding, answer};
use self::batch::Batch;
use self::generation::GenerationFlags;
use self::input::InputFlags;
pub(crate) use self::input::read_file;
use self::trace::Trace;
use crate::atomic_file;
use crate::command_engine::{BackendArgs, CommandEngine};
use crate::duration::Duration;
use crate::exit::Exit;
use crate::human_output::{print_envelope, print_notes, print_verdict};
use crate::media;
use crate::modules::{Library, Search};
use crate::output::Output;
use crate::wiring;

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The module: a name or a folder.
    module: String,
    #[command(flatten)]
    input: InputFlags,
    /// Print the answer while it is generated; with --json one chunk per line.
    #[arg(long)]
    stream: bool,
    #[command(flatten)]
    asked: BackendArgs,
    #[command(flatten)]
    generation: GenerationFlags,
    /// Time limit of the run (500ms, 30s, 2m).
    #[arg(long, value_name = "TIME")]
    timeout: Option<Duration>,
    /// Record requests and answers in this folder, for --replay.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Replay the answers of this recording, or of a folder of recordings, and call no back-end. A request
    /// that was not recorded fails; the error shows what has changed.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["record", "backend", "config"])]
    replay: Option<PathBuf>,
    /// Write the trace of the run to this file, as JSON: attempts, events, times.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Run each line of this file, one JSON input per line, and write one envelope per line to -o. The same
    /// command resumes a stopped batch with the lines that have no answer yet.
    #[arg(long, value_name = "FILE", requires = "output", conflicts_with_all = ["input", "args", "stream", "trace", "record"])]
    batch: Option<PathBuf>,
    /// Limit of concurrent runs of a batch.
    #[arg(short, long, value_name = "N", default_value_t = 4, value_parser = crate::command::test::jobs)]
    jobs: usize,
    /// Write the envelope to this file, as JSON; the file is written atomically.
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Run {
    pub(crate) fn run(&self, search: &Search, output: &Output) -> Result<Exit> {
        let found = search.find(&self.module)?;
        let module = Arc::new(wiring::load_module(&found.path)?);
        let modules = Library::around(search, &found.path).reachable(&module);
        let generation = self.generation.options()?;
        let asking = self.asking()?;
        let files = self.input.named_files();
        let pipeline = media::for_command(&module, &found.path, files, self.asked.config.as_deref())?;
        if let (Some(from), Some(to)) = (&self.batch, &self.output) {
            let engine = asking.engine(modules).with_media(pipeline);
            let batch = Batch {
                engine: &engine,
                from,
                to,
                jobs: self.jobs,
            };
            let execute = |input| {
                let input = self.input.complete(&module, input)?;
                Ok(self.execute(module.clone(), input, generation.clone()))
            };
            return wiring::current_thread_runtime()?.block_on(batch.run(execute, output));
        }
        let input = self.input.read(&module)?;
        let recording = self
            .record
            .as_ref()
            .map(|folder| recording(folder, &module, &input));
        let mut trace = self.trace.is_some().then(|| Trace::new(module.name()));
        let engine = asking.engine(modules).with_media(pipeline);
        let execute = self.execute(module, input, generation);
        let running = answer(&engine, execute, output, trace.as_mut());
        let last = wiring::current_thread_runtime()?.block_on(running)?;
        let envelope = last.envelope();
        if let (Some(path), RunEnding::Event(_)) = (&recording, &last) {
            asking.save(path)?;
        }
        if let (Some(path), Some(trace)) = (&self.trace, trace) {
            atomic_file::write_json(path, &trace.finish(&envelope))?;
        }
        self.show(&last, &envelope, output)?;
        let good = envelope.get("ok") == Some(&Value::Bool(true));
        Ok(if good { Exit::Success } else { Exit::Failure })
    }

    fn execute(&self, module: Arc<Module>, input: Value, generation: GenerationOptions) -> RunRequest {
        RunRequest {
            module,
            input,
            mode: if self.stream {
                RunMode::Stream
            } else {
                RunMode::Sync
            },
            options: RunOptions {
                model: self.asked.model.clone(),
                timeout_ms: self.timeout.map(Duration::as_millis),
                generation,
                ..RunOptions::default()
            },
            warnings: Vec::new(),
            admission: Admission::default(),
        }
    }

    fn asking(&self) -> Result<CommandEngine> {
        match (&self.record, &self.replay) {
            (_, Some(path)) => CommandEngine::replayed(path),
            (Some(_), None) => CommandEngine::recorded(&self.asked),
            (None, None) => CommandEngine::live(&self.asked),
        }
    }

    fn show(&self, last: &RunEnding, envelope: &Value, output: &Output) -> Result<()> {
        if let Some(path) = &self.output {
            atomic_file::write_json(path, envelope)?;
        }
        match (self.stream, output.json, &self.output) {
            (true, true, _) => last.print_unless_streamed(output)?,
            (false, true, None) => output.json(envelope)?,
            // The envelope was written to the file.
            (false, true, Some(_)) => {}
            (true, false, _) | (false, false, Some(_)) => {
                print_verdict(output, envelope)?;
                print_notes(output, envelope)?;
            }
            (false, false, None) => print_envelope(output, envelope)?,
        }
        Ok(())
    }
}

/// Path of a recording, from the module name and a hash of the input: equal runs use the same file.
fn recording(folder: &Path, module: &Module, input: &Value) -> PathBuf {
    let digest = hex::encode(Sha256::digest(input.to_string()));
    let short = digest.get(..12).unwrap_or(&digest);
    folder.join(format!("{}.{short}.yaml", module.name()))
}
