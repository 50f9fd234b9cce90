//! The accounts of relayed calls. A call is entered as it begins and closed as it ends, each once, in this
//! order, and nobody's first token waits for it. What a killed server leaves open, the next one closes.

use std::sync::Arc;

use ir::RunId;
use tenancy::Tenant;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;
use tracing::error;

use crate::limits;
use crate::port::{End, Journal, JournalError, NewRun, Spent};

#[derive(Clone, Debug)]
pub(crate) struct Book {
    journal: Arc<dyn Journal>,
    tasks: TaskTracker,
}

/// A call that is entered and not closed yet.
#[derive(Debug)]
pub(super) struct Account {
    close: Option<oneshot::Sender<End>>,
}

impl Book {
    pub(crate) fn new(journal: Arc<dyn Journal>, tasks: TaskTracker) -> Self {
        Self { journal, tasks }
    }

    pub(super) fn enter(&self, tenant: &Tenant, new: NewRun) -> Account {
        let (close, closed) = oneshot::channel();
        let (journal, tenant) = (self.journal.clone(), tenant.clone());
        self.tasks.spawn(async move {
            if let Err(error) = journal.create(&tenant, &new).await {
                error!(run = %new.id, %error, "a relayed call could not be entered");
                return;
            }
            let Ok(end) = closed.await else { return };
            close_account(&*journal, &tenant, new.id, &end).await;
        });
        Account { close: Some(close) }
    }
}

impl Account {
    pub(super) fn close(&mut self, code: Option<String>, at_ms: u64, spent: Vec<Spent>) {
        if let Some(close) = self.close.take() {
            close.send(End::new(code, at_ms, spent)).ok();
        }
    }
}

async fn close_account(journal: &dyn Journal, tenant: &Tenant, run: RunId, end: &End) {
    while let Err(error) = journal.finish(tenant, run, 0, &[], end).await {
        error!(%run, %error, "a relayed call could not be closed");
        match error {
            JournalError::Full | JournalError::Storage(_) => tokio::time::sleep(limits::CLOSE_RETRY).await,
            _ => return,
        }
    }
}
