//! The end of a run whose task panicked: its readers get an error, the journal gets an end, and its slot is
//! freed. A panic is a bug; it must not cost more than its run.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use ir::RunId;
use module::Code;
use module::envelope::ErrorBody;
use tracing::error;

use crate::limits;
use crate::port::{EncodedEvent, EventKind, JournalError, RunEnd, RunKind};
use crate::run::{RunBroadcast, encode, failed_chunk, replay};
use crate::runs::Runs;

impl Runs {
    /// Executes the task of a run; if it panics, ends the run.
    pub(crate) async fn catch_panic(
        &self,
        run: RunId,
        live: &Arc<RunBroadcast>,
        task: impl Future<Output = ()>,
    ) {
        // What the task leaves behind is dropped; the journal and the broadcast are consistent at every await.
        if AssertUnwindSafe(task).catch_unwind().await.is_ok() {
            return;
        }
        error!(%run, "the task of a run panicked");
        for _ in 0..limits::PANIC_CLOSE_ATTEMPTS {
            match self.close_panicked(run, live).await {
                // The last writes of the task are still queued.
                Err(JournalError::Fenced(_)) => tokio::time::sleep(limits::PANIC_CLOSE_PAUSE).await,
                Err(JournalError::Unknown(_) | JournalError::Ended(_)) | Ok(()) => break,
                Err(error) => {
                    error!(%run, %error, "a run that panicked is left for recovery");
                    break;
                }
            }
        }
        self.publish_journaled(run, live).await;
        live.close();
    }

    async fn close_panicked(&self, run: RunId, live: &RunBroadcast) -> Result<(), JournalError> {
        let tenant = &live.tenant;
        let row = self.journal.find(tenant, run).await?;
        let row = row.ok_or(JournalError::Unknown(run))?;
        let recovered = replay(&self.journal, tenant, run).await?;
        let offset = recovered.offset;
        let last = match row.kind {
            RunKind::Relay => (offset > 0).then(|| EncodedEvent {
                kind: EventKind::Interrupted,
                seq: None,
                body: Arc::from(""),
            }),
            RunKind::Module(_) => {
                let body = ErrorBody::new(Code::E4000, "the run failed unexpectedly");
                Some(encode(&failed_chunk(run, body, recovered)))
            }
        };
        let code = Some(String::from(Code::E4000.as_str()));
        let end = RunEnd::new(code, self.clock.now_ms(), Vec::new());
        let journal = &self.journal;
        journal.finish(tenant, run, offset, last.as_slice(), &end).await
    }

    /// Publishes what the journal has and the readers have not.
    async fn publish_journaled(&self, run: RunId, live: &RunBroadcast) {
        loop {
            let after = live.last_offset();
            let page = self
                .journal
                .read(&live.tenant, run, after, limits::PAGE_ENTRIES_MAX);
            match page.await {
                Ok(page) if !page.is_empty() => live.publish(page),
                _ => return,
            }
        }
    }
}
