//! Recovery of a run that an earlier server left unfinished: the journal is replayed to find what was sent,
//! and the run continues after that or is closed.

use std::sync::Arc;

use ir::RunId;
use module::Code;
use module::envelope::ErrorBody;
use module::stream::{Assembler, Checkpoint, Chunk, Recovery};
use serde_json::{Map, Value};

use super::failure;
use super::render::decode;
use crate::limits;
use crate::port::{Journal, JournalError};
use crate::settings::Settings;
use tenancy::Tenant;

/// What clients have received of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RecoveredRun {
    /// Offset of the last journal entry.
    pub(crate) offset: u64,
    pub(crate) last_seq: u64,
    pub(crate) last_checkpoint: Option<Checkpoint>,
    /// Highest progress that was sent.
    pub(crate) percent: u8,
    pub(crate) data: Map<String, Value>,
}

/// Replays the journal of a run.
pub(crate) async fn replay(
    journal: &Arc<dyn Journal>,
    tenant: &Tenant,
    run: RunId,
) -> Result<RecoveredRun, JournalError> {
    let mut assembler = Assembler::new();
    let mut inherited = RecoveredRun::default();
    loop {
        let after = inherited.offset;
        let page = journal.read(tenant, run, after, limits::PAGE_ENTRIES_MAX).await?;
        if page.is_empty() {
            break;
        }
        for entry in page {
            inherited.offset = entry.offset;
            let Some(chunk) = decode(&entry.event) else {
                continue;
            };
            if let Some(seq) = chunk.seq() {
                inherited.last_seq = seq;
                inherited.last_checkpoint = None;
            }
            if let Chunk::Delta {
                checkpoint: Some(checkpoint),
                ..
            } = &chunk
            {
                inherited.last_checkpoint = Some(checkpoint.clone());
            }
            if let Chunk::Progress(progress) = &chunk {
                inherited.percent = inherited.percent.max(progress.percent);
            }
            // Journaled chunks are valid; a violation would show in the data.
            drop(assembler.push(chunk));
        }
    }
    inherited.data = assembler.data().clone();
    Ok(inherited)
}

/// The last chunk of a run that failed, with what clients have received of it.
pub(crate) fn failed_chunk(run: RunId, body: ErrorBody, inherited: RecoveredRun) -> Chunk {
    let partial = (!inherited.data.is_empty()).then_some(inherited.data);
    Chunk::ending(&run.to_string(), failure::failure(body, partial), None, None)
}

/// The last chunk of a run that must not be rerun.
pub(crate) fn interrupted_chunk(run: RunId, inherited: RecoveredRun, settings: &Settings) -> Chunk {
    let body = ErrorBody::new(Code::E2010, "the server stopped before the run had ended");
    let mut recovery = Recovery::after(inherited.last_seq, inherited.last_checkpoint);
    recovery.retry_after_ms = settings.retry_after_ms;
    recovery.max_retries = settings.max_retries;
    let partial = (!inherited.data.is_empty()).then_some(inherited.data);
    let envelope = failure::failure(body, partial);
    Chunk::ending(&run.to_string(), envelope, None, Some(&recovery))
}
