//! What a machine is told before it starts.

use std::sync::Arc;

use ir::{RunId, TraceContext};
use module::Module;
use module::manifest::ChunkType;
use module::stream::{Projector, ProjectorOptions};
use serde_json::{Map, Value};

use super::reply_policy::ReplyPolicy;
use crate::run::command::{RunMode, OnDisconnect, Warning, warnings_annotation};
use crate::run::preface::Preface;
use crate::settings::Settings;

/// How far an earlier server came with a run, as its clients know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentProgress {
    /// The number of the last chunk.
    pub last_seq: u64,
    pub percent: u8,
}

#[derive(Clone, Debug)]
pub struct MachineConfig {
    pub run: RunId,
    pub module: Arc<Module>,
    pub mode: RunMode,
    pub on_disconnect: OnDisconnect,
    pub progress: bool,
    pub chunk_type: Option<ChunkType>,
    pub warnings: Vec<Warning>,
    /// Ends the run earlier than the module would.
    pub timeout_ms: Option<u64>,
    /// The caller's place in a trace.
    pub trace: Option<TraceContext>,
    pub settings: Arc<Settings>,
    /// What happens behind an answer.
    pub reply_policy: Arc<dyn ReplyPolicy>,
    /// Whether steps come before the run's own question.
    pub prepares: bool,
    /// What clients have of this run from an earlier server.
    pub inherited: Option<SentProgress>,
    /// What was done before the machine starts.
    pub preface: Preface,
}

impl MachineConfig {
    /// Goes on behind what clients already have.
    pub(super) fn projector(&self) -> Projector {
        let mut options = ProjectorOptions::from(&self.module.manifest.response);
        options.chunk_type = self.chunk_type.unwrap_or(options.chunk_type);
        match self.inherited {
            None => Projector::new(options),
            Some(heard) => Projector::after(options, heard.last_seq),
        }
    }

    pub(super) fn deadline_ms(&self) -> u64 {
        let own_ms = self.module.manifest.response.max_duration_ms;
        self.timeout_ms
            .map_or(own_ms, |timeout_ms| timeout_ms.min(own_ms))
    }

    /// `_warnings`, if there is anything to warn of.
    pub(super) fn warnings(&self) -> Map<String, Value> {
        warnings_annotation(&self.warnings)
    }
}
