//! The engine of a command that runs modules: it calls back-ends, calls back-ends and records their answers,
//! or replays recordings. Every such command gets its engine here.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;
use engine::fleet::{Fleet, Member};
use engine::gate::Gates;
use engine::route::Policy;
use engine::{Engine, Modules, Ports, RunRequest, Settings, Tenant};
use module::envelope::Envelope;
use providers::scripted::Script;
use providers::{Recorder, Replay, ScriptedUpstream};
use serde_json::Value;
use spill::SpillStore;
use store::memory::MemoryJournal;

use crate::atomic_file;
use crate::backends::{self, BackendName};
use crate::config;
use crate::gates;
use crate::output::hinted;
use crate::wiring::SystemClock;

/// Limit of recordings in one folder.
const RECORDINGS_MAX: usize = 10_000;

/// The flags that select back-end and model; the same for all commands that call a model.
#[derive(Clone, Debug, Args)]
pub(crate) struct BackendArgs {
    /// The back-end to call: a name from the configuration, or scripted:FILE.yaml. May be given several
    /// times; if one fails, the next one is called.
    #[arg(long, value_name = "BACKEND")]
    pub(crate) backend: Vec<BackendName>,
    /// The model to request from back-ends that are not bound to a model.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Use this file instead of the project's cogn.toml.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// A fleet, its gates, and the recorder or the replayed recording.
#[derive(Clone, Debug)]
pub(crate) struct CommandEngine {
    pub(crate) fleet: Arc<Fleet>,
    gates: Gates,
    recorder: Option<Arc<Recorder>>,
    replay: Option<Arc<Replay>>,
}

impl CommandEngine {
    pub(crate) fn live(asked: &BackendArgs) -> Result<Self> {
        let fleet = backends::fleet(&asked.backend, asked.config.as_deref(), &SpillStore::default())?;
        Ok(Self {
            fleet: Arc::new(fleet),
            gates: gates::configured(&asked.backend, asked.config.as_deref())?,
            recorder: None,
            replay: None,
        })
    }

    /// Calls a script instead of a back-end.
    pub(crate) fn scripted(script: &str) -> Result<Self> {
        let script = ScriptedUpstream::new("script", Script::parse(script)?);
        Ok(Self {
            fleet: Arc::new(Fleet::in_order([Arc::new(script) as _])),
            gates: Gates::default(),
            recorder: None,
            replay: None,
        })
    }

    /// The same, with every answer recorded.
    pub(crate) fn recorded(asked: &BackendArgs) -> Result<Self> {
        let secrets = config::known_secrets(asked.config.as_deref())?;
        Ok(Self::live(asked)?.recording(secrets))
    }

    /// The same back-ends with a new recorder.
    pub(crate) fn recording(&self, secrets: Vec<secrecy::SecretString>) -> Self {
        let fleet = &self.fleet;
        let recorder = Recorder::new(secrets);
        // The answers of a mirror are not part of the run, so they are not recorded.
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

    /// Calls no back-end: answers come from a file of recordings, or a folder of such files.
    pub(crate) fn replayed(path: &Path) -> Result<Self> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let replay = Arc::new(Replay::new(&name, read(path)?));
        Ok(Self {
            fleet: Arc::new(Fleet::in_order([replay.clone() as _])),
            // The current configuration does not apply to a recorded run.
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
            fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        atomic_file::write(path, yaml.as_bytes())
    }

    /// An engine for one command. Its runs are not resumed after the command, so the journal is in memory.
    pub(crate) fn engine(&self, modules: Modules) -> Engine {
        let ports = Ports {
            fleet: self.fleet.clone(),
            journal: Arc::new(MemoryJournal::default()),
            clock: Arc::new(SystemClock),
        };
        let settings = Settings {
            gates: self.gates.clone(),
            ..Settings::default()
        };
        Engine::new(ports, settings, modules)
    }
}

/// Executes a run and returns its envelope, also if the run failed.
pub(crate) async fn envelope_of(engine: &Engine, execute: RunRequest) -> Result<Value> {
    let tenant = Tenant::local();
    let started = match engine.start(&tenant, execute).await {
        Ok(started) => started,
        Err(error @ engine::Error::Input(_)) => {
            return Ok(Envelope::failure(error.into_body()).into_value());
        }
        Err(error) => return Err(error.into()),
    };
    let last = started.subscription.terminal_event().await?;
    Ok(engine::run::envelope(&last))
}

/// The recordings of a file, or of the files of a folder in the order of their names.
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
            bail!("{shown} contains more than {RECORDINGS_MAX} recordings");
        }
    }
    if paths.is_empty() {
        return Err(hinted(
            format!("no recordings in {shown}"),
            "`--record DIR` writes recordings to a folder",
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
