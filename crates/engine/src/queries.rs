//! What the journal knows of runs, for whoever looks.

use ir::RunId;
use tenancy::Tenant;

use crate::engine::Engine;
use crate::error::Error;
use crate::port::{EncodedEvent, RunRecord, RunState};

impl Engine {
    pub async fn find(&self, tenant: &Tenant, run: RunId) -> Result<Option<RunRecord>, Error> {
        Ok(self.journal().find(tenant, run).await?)
    }

    /// The last event of a run that has ended.
    pub async fn last(&self, tenant: &Tenant, row: &RunRecord) -> Result<Option<EncodedEvent>, Error> {
        // What a dialect's frames say is no event of a run.
        if row.state == RunState::Running || row.module.is_empty() {
            return Ok(None);
        }
        let before = row.last_offset.saturating_sub(1);
        let entries = self.journal().read(tenant, row.id, before, 1).await?;
        Ok(entries.into_iter().next_back().map(|entry| entry.event))
    }

    /// Whether the journal answers at all.
    pub async fn check_journal(&self) -> Result<(), Error> {
        let nobody = RunId::from_parts(0, 0);
        self.journal().find(&Tenant::local(), nobody).await?;
        Ok(())
    }
}
