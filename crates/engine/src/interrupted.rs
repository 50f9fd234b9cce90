//! Closes a run that an earlier server left unfinished. A full journal does not block the start of the
//! server: closing is retried in the background, and left to the next server's recovery if this one stops
//! first.

use std::sync::Arc;

use ir::RunId;
use tenancy::Tenant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::warn;

use crate::limits;
use crate::port::{EncodedEvent, Journal, JournalError, RunEnd};

pub(crate) struct InterruptedRun {
    pub(crate) tenant: Tenant,
    pub(crate) run: RunId,
    /// Offset of the last journal entry of the run.
    pub(crate) offset: u64,
    /// `None` for a relayed call without journaled frames.
    pub(crate) last: Option<EncodedEvent>,
    pub(crate) end: RunEnd,
}

impl InterruptedRun {
    /// Closes the run, or spawns a task that retries if the journal cannot be written.
    pub(crate) async fn finish(
        self,
        journal: &Arc<dyn Journal>,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> Result<(), JournalError> {
        match self.write(journal).await {
            Err(JournalError::Full | JournalError::Storage(_)) => {
                warn!(run = %self.run, "closing of an unfinished run failed; retry scheduled");
                tasks.spawn(self.try_again(journal.clone(), stop.clone()));
                Ok(())
            }
            written => written,
        }
    }

    async fn try_again(self, journal: Arc<dyn Journal>, stop: CancellationToken) {
        let pause = || tokio::time::sleep(limits::CLOSE_RETRY);
        while stop.run_until_cancelled(pause()).await.is_some() {
            match self.write(&journal).await {
                Err(JournalError::Full | JournalError::Storage(_)) => {}
                Ok(()) | Err(_) => return,
            }
        }
    }

    async fn write(&self, journal: &Arc<dyn Journal>) -> Result<(), JournalError> {
        let last = self.last.as_slice();
        journal
            .finish(&self.tenant, self.run, self.offset, last, &self.end)
            .await
    }
}
