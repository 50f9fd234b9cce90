//! Journal lifecycle records of relayed calls: one start record, then one end record, neither of which delays
//! the call. Calls left open by a killed server are closed by the next one.

use std::sync::Arc;

use ir::RunId;
use tenancy::Tenant;
use tracing::error;

use crate::port::{Journal, LifecycleRecord, RunEnd};

/// The start record of a call whose end record is not written yet.
#[derive(Debug)]
pub(super) struct OpenRecord {
    journal: Arc<dyn Journal>,
    tenant: Tenant,
    run: RunId,
    open: bool,
}

impl OpenRecord {
    /// For a call whose start record is already in the journal.
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
            error!(%run, %error, "failed to record the end of a relayed call");
        }
    }
}
