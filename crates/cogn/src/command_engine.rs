//! Who a command asks: back-ends, back-ends whose answers are written down, or recordings alone. Commands
//! that run modules get their engine here, so that they all stand on the same ground.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;
use engine::fleet::{Fleet, Member};
use engine::gate::Gates;
use engine::route::Policy;
use engine::{Depot, Engine, RunRequest, ReadFrom, Modules, Ports, Settings, Tenant};
use module::envelope::Envelope;
use providers::scripted::Script;
use providers::{Recorder, Replay};
use serde_json::Value;
use store::memory::MemoryJournal;

use crate::atomic_file;
use crate::backends::{self, BackendName};
use crate::config;
use crate::gates;
use crate::output::hinted;
use crate::wiring::SystemClock;

/// Most recordings in one folder.
const RECORDINGS_MAX: usize = 10_000;

/// Who is asked: the same flags wherever a model is.
#[derive(Clone, Debug, Args)]
pub(crate) struct BackendArgs {
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

/// A fleet, and what happens to its answers.
#[derive(Clone, Debug)]
pub(crate) struct CommandEngine {
    pub(crate) fleet: Arc<Fleet>,
    gates: Gates,
    recorder: Option<Arc<Recorder>>,
    replay: Option<Arc<Replay>>,
}

impl CommandEngine {
    pub(crate) fn live(asked: &BackendArgs) -> Result<Self> {
        let fleet = backends::fleet(&asked.backend, asked.config.as_deref(), &Depot::default())?;
        Ok(Self {
            fleet: Arc::new(fleet),
            gates: gates::configured(&asked.backend, asked.config.as_deref())?,
            recorder: None,
            replay: None,
        })
    }

    /// The same, with every answer written down.
    pub(crate) fn recorded(asked: &BackendArgs) -> Result<Self> {
        let secrets = config::known_secrets(asked.config.as_deref())?;
        Ok(Self::live(asked)?.recording(secrets))
    }

    /// A recording of its own of what these back-ends answer.
    pub(crate) fn recording(&self, secrets: Vec<secrecy::SecretString>) -> Self {
        let fleet = &self.fleet;
        let recorder = Recorder::new(secrets);
        // A copy is for comparison: nobody hears its answer, so it is no part of what happened.
        let copied = match &fleet.host().policy {
            Some(Policy::Mirror { to }) => Some(to),
            _ => None,
        };
        let members = fleet.candidates().iter().enumerate().map(|(place, candidate)| {
            match (fleet.upstream(place), &candidate.unavailable) {
                (Some(upstream), _) if copied == Some(&candidate.name) => {
                    Member::new(candidate.clone(), upstream.clone())
                }
                (Some(upstream), _) => Member::new(candidate.clone(), recorder.wrap(upstream.clone())),
                (None, reason) => {
                    let reason = reason.clone().unwrap_or_default();
                    Member::unavailable(candidate.clone(), reason)
                }
            }
        });
        let fleet = Fleet::new(members.collect(), fleet.host().clone(), *fleet.settings());
        Self {
            fleet: Arc::new(fleet),
            gates: self.gates.clone(),
            recorder: Some(recorder),
            replay: None,
        }
    }

    /// Nobody is asked: a file of recordings, or a folder of such files, answers.
    pub(crate) fn replayed(path: &Path) -> Result<Self> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let replay = Arc::new(Replay::new(&name, read(path)?));
        Ok(Self {
            fleet: Arc::new(Fleet::in_order([replay.clone() as _])),
            // What is configured here and now has no say in what was recorded.
            gates: Gates::default(),
            recorder: None,
            replay: Some(replay),
        })
    }

    pub(crate) fn replay(&self) -> Option<&Replay> {
        self.replay.as_deref()
    }

    /// Writes the recording, if one was made.
    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let Some(recorder) = &self.recorder else {
            return Ok(());
        };
        let yaml = recorder.script()?.to_yaml()?;
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        atomic_file::write(path, yaml.as_bytes())
    }

    /// An engine for one command: nobody comes back to its runs once the command has ended.
    pub(crate) fn engine(&self, modules: Modules) -> Engine {
        let ports = Ports {
            fleet: self.fleet.clone(),
            journal: Arc::new(MemoryJournal::default()),
            clock: Arc::new(SystemClock::default()),
        };
        let settings = Settings {
            gates: self.gates.clone(),
            ..Settings::default()
        };
        Engine::new(ports, settings, modules)
    }
}

/// Runs to the end and returns the envelope, whatever became of it.
pub(crate) async fn envelope_of(engine: &Engine, execute: RunRequest) -> Result<Value> {
    let tenant = Tenant::local();
    let run = match engine.start(&tenant, execute).await {
        Ok(run) => run,
        Err(error @ engine::Error::Input(_)) => {
            return Ok(Envelope::failure(error.into_body()).into_value());
        }
        Err(error) => return Err(error.into()),
    };
    let last = engine.subscribe(&tenant, run, ReadFrom::Start).await?.terminal_event().await?;
    Ok(engine::run::envelope(&last))
}

/// All that was recorded in a file, or in the files of a folder, in the order of their names.
fn read(path: &Path) -> Result<Script> {
    let shown = path.display();
    let is_folder = path
        .metadata()
        .with_context(|| format!("cannot read {shown}"))?
        .is_dir();
    if !is_folder {
        return read_file(path);
    }
    let entries = fs::read_dir(path).with_context(|| format!("cannot read {shown}"))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "yaml") {
            paths.push(path);
        }
        if paths.len() > RECORDINGS_MAX {
            bail!("{shown} holds more than {RECORDINGS_MAX} recordings");
        }
    }
    if paths.is_empty() {
        return Err(hinted(
            format!("no recordings in {shown}"),
            "`--record DIR` writes them there",
        ));
    }
    paths.sort();
    let mut all = Script::default();
    for path in paths {
        all.0.extend(read_file(&path)?.0);
    }
    Ok(all)
}

fn read_file(path: &Path) -> Result<Script> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Script::parse(&text).with_context(|| format!("cannot use {}", path.display()))
}
