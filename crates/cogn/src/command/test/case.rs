//! One golden test: runs the input and compares the envelope with the expected one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use engine::run::RunOptions;
use engine::{Admission, Modules, RunMode, RunRequest};
use module::golden::{Mismatch, compare_answer};
use module::module::TestPair;
use module::{Code, Module};
use serde_json::Value;

use crate::command_engine::{CommandEngine, envelope_of};
use crate::media;

pub(super) struct Case {
    pub(super) module: Arc<Module>,
    /// The modules that it may call.
    pub(super) modules: Modules,
    pub(super) folder: PathBuf,
    pub(super) pair: TestPair,
    pub(super) source: CaseSource,
    pub(super) model: Option<String>,
}

/// The source of the answer.
pub(super) enum CaseSource {
    Recording(PathBuf),
    /// Back-ends with a recorder, and the path of the recording.
    Live(CommandEngine, PathBuf),
}

/// The result of a test.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Status {
    Passed,
    /// The envelope differs from the expected one.
    Failed(Vec<Mismatch>),
    /// The request differs from the recorded one; contains the difference.
    Stale(String),
    /// There is no recording.
    Unrecorded,
    /// The test itself cannot be run.
    Broken(String),
}

pub(super) struct Outcome {
    pub(super) name: String,
    pub(super) status: Status,
    pub(super) envelope: Option<Value>,
    pub(super) elapsed_ms: u64,
}

impl Case {
    pub(super) async fn run(self) -> Outcome {
        let began = Instant::now();
        let (status, envelope) = match self.judged().await {
            Ok(judged) => judged,
            Err(error) => (Status::Broken(format!("{error:#}")), None),
        };
        Outcome {
            name: self.pair.name.clone(),
            status,
            envelope,
            elapsed_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }

    async fn judged(&self) -> Result<(Status, Option<Value>)> {
        let input = read_json(&self.folder.join(&self.pair.input))?;
        let expected = read_json(&self.folder.join(&self.pair.expected))?;
        let asking = match &self.source {
            CaseSource::Live(asking, _) => asking.clone(),
            CaseSource::Recording(tape) => {
                let there = tape.try_exists();
                if !there.with_context(|| format!("cannot read {}", tape.display()))? {
                    return Ok((Status::Unrecorded, None));
                }
                CommandEngine::replayed(tape)?
            }
        };
        let execute = RunRequest {
            module: self.module.clone(),
            input,
            mode: RunMode::Sync,
            options: RunOptions {
                model: self.model.clone(),
                ..RunOptions::default()
            },
            warnings: Vec::new(),
            admission: Admission::default(),
        };
        let pipeline = media::for_test(&self.folder);
        let engine = asking.engine(self.modules.clone()).with_media(pipeline);
        let envelope = envelope_of(&engine, execute).await?;
        if let Some(stale) = asking
            .replay()
            .and_then(|replay| replay.stale().into_iter().next())
        {
            return Ok((Status::Stale(stale.difference), None));
        }
        if let CaseSource::Live(asking, tape) = &self.source {
            // An attempt that reached no back-end is not recorded.
            if envelope.pointer("/error/code") == Some(&Value::from(Code::E4001.as_str())) {
                let why = envelope.pointer("/error/message").and_then(Value::as_str);
                return Ok((Status::Broken(String::from(why.unwrap_or_default())), None));
            }
            asking.save(tape)?;
        }
        let found = compare_answer(&self.module, &expected, &envelope);
        let status = if found.is_empty() {
            Status::Passed
        } else {
            Status::Failed(found)
        };
        Ok((status, Some(envelope)))
    }
}

fn read_json(path: &Path) -> Result<Value> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("{} is not JSON", path.display()))
}
