//! Where the events of a run go: to the journal, or, for a step of a composition, to the composed run, which
//! is journaled and recovered as a whole.

use std::sync::Arc;

use ir::RunId;
use tenancy::Tenant;

use super::record::{AttemptRecord, Trace};
use super::trace_store::TraceStore;
use crate::port::{EncodedEvent, Journal, JournalError, RunEnd};

#[derive(Debug)]
pub(crate) enum RunSink {
    Journal(JournalSink),
    Step(StepEnd),
}

#[derive(Debug)]
pub(crate) struct JournalSink {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) traces: Arc<TraceStore>,
}

/// What is kept of a step, of any length.
#[derive(Debug, Default)]
pub(crate) struct StepEnd {
    pub(crate) last: Option<EncodedEvent>,
    pub(crate) attempts: Vec<AttemptRecord>,
}

impl RunSink {
    pub(crate) async fn append(
        &self,
        tenant: &Tenant,
        run: RunId,
        after: u64,
        events: &[EncodedEvent],
    ) -> Result<(), JournalError> {
        match self {
            Self::Journal(sink) => sink.journal.append(tenant, run, after, events).await,
            Self::Step(_) => Ok(()),
        }
    }

    pub(crate) async fn finish(
        &mut self,
        tenant: &Tenant,
        run: RunId,
        after: u64,
        events: &[EncodedEvent],
        end: RunEnd,
    ) -> Result<(), JournalError> {
        match self {
            Self::Journal(sink) => sink.journal.finish(tenant, run, after, events, &end).await,
            Self::Step(step) => {
                step.last = events.last().cloned();
                Ok(())
            }
        }
    }

    pub(crate) fn put_trace(&mut self, tenant: &Tenant, trace: Trace) {
        match self {
            Self::Journal(sink) => sink.traces.put(tenant, trace),
            Self::Step(step) => step.attempts = trace.attempts,
        }
    }
}
