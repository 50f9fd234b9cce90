//! The end of a run that another server left. A journal that is full keeps nobody from starting: the end is
//! tried again until there is room, and what this server does not bring about is left to the next.

use std::sync::Arc;

use ir::RunId;
use tenancy::Tenant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::warn;

use crate::limits;
use crate::port::{RunEnd, Journal, JournalError, EncodedEvent};

pub(crate) struct InterruptedRun {
    pub(crate) tenant: Tenant,
    pub(crate) run: RunId,
    /// Where its journal ends.
    pub(crate) offset: u64,
    /// None where nobody ever read it.
    pub(crate) last: Option<EncodedEvent>,
    pub(crate) end: RunEnd,
}

impl InterruptedRun {
    /// Now, or later by a task of its own.
    pub(crate) async fn finish(
        self,
        journal: &Arc<dyn Journal>,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> Result<(), JournalError> {
        match self.write(journal).await {
            Err(JournalError::Full | JournalError::Storage(_)) => {
                warn!(run = %self.run, "the journal has no room for the end of a run; it is tried again");
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
