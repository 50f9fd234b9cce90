//! Configuration of the machine of one run.

use std::sync::Arc;

use ir::{RunId, TraceContext};
use module::Module;
use module::manifest::ChunkType;
use module::stream::{Projector, ProjectorOptions};
use serde_json::{Map, Value};

use super::reply_policy::ReplyPolicy;
use crate::run::command::{OnDisconnect, RunMode, Warning, warnings_annotation};
use crate::run::preface::Preface;
use crate::settings::Settings;

/// What an earlier server has sent of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentProgress {
    /// Sequence number of the last chunk.
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
    /// Time limit of the run, if shorter than the module's.
    pub timeout_ms: Option<u64>,
    /// The caller's trace context.
    pub trace: Option<TraceContext>,
    pub settings: Arc<Settings>,
    /// Decides after a complete answer.
    pub reply_policy: Arc<dyn ReplyPolicy>,
    /// Whether a composition precedes the module's own request.
    pub prepares: bool,
    /// What clients have received from an earlier server.
    pub inherited: Option<SentProgress>,
    /// Result of the preparation that precedes the machine.
    pub preface: Preface,
}

impl MachineConfig {
    /// Continues after what clients already have.
    pub(super) fn projector(&self) -> Projector {
        let mut options = ProjectorOptions::from(&self.module.manifest.response);
        options.chunk_type = self.chunk_type.unwrap_or(options.chunk_type);
        match self.inherited {
            None => Projector::new(options),
            Some(sent) => Projector::after(options, sent.last_seq),
        }
    }

    pub(super) fn deadline_ms(&self) -> u64 {
        let own_ms = self.module.manifest.response.max_duration_ms;
        self.timeout_ms
            .map_or(own_ms, |timeout_ms| timeout_ms.min(own_ms))
    }

    /// `_warnings`, if there are any.
    pub(super) fn warnings(&self) -> Map<String, Value> {
        warnings_annotation(&self.warnings)
    }
}
