//! The accounts of relayed calls. A call is entered as it begins and closed as it ends, each once, in this
//! order, and nobody waits for it. What a killed server leaves open, the next one closes.

use std::sync::Arc;

use ir::RunId;
use tenancy::Tenant;
use tracing::error;

use crate::port::{LifecycleRecord, RunEnd, Journal};

/// A call that is entered and not closed yet.
#[derive(Debug)]
pub(super) struct OpenRecord {
    journal: Arc<dyn Journal>,
    tenant: Tenant,
    run: RunId,
    open: bool,
}

impl OpenRecord {
    /// The account of a call that is entered already.
    pub(super) fn of(journal: Arc<dyn Journal>, tenant: &Tenant, run: RunId) -> Self {
        Self {
            journal,
            tenant: tenant.clone(),
            run,
            open: true,
        }
    }

    pub(super) fn close(&mut self, end: RunEnd) {
        if !std::mem::replace(&mut self.open, false) {
            return;
        }
        let run = self.run;
        let booking = LifecycleRecord::Ended { run, last: None, end };
        if let Err(error) = self.journal.record(&self.tenant, booking) {
            error!(%run, %error, "a relayed call could not be closed");
        }
    }
}
