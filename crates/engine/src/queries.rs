//! Queries of the journal: runs, their terminal events, and whether it can be read.

use ir::RunId;
use tenancy::Tenant;

use crate::error::Error;
use crate::port::{EncodedEvent, RunKind, RunRecord, RunState};
use crate::runs::Runs;

impl Runs {
    pub(crate) async fn find(&self, tenant: &Tenant, run: RunId) -> Result<Option<RunRecord>, Error> {
        Ok(self.journal.find(tenant, run).await?)
    }

    /// The terminal event of a run that has ended.
    pub(crate) async fn last(&self, tenant: &Tenant, row: &RunRecord) -> Result<Option<EncodedEvent>, Error> {
        // The frames of a relayed response are not events of a run.
        if row.state == RunState::Running || row.kind == RunKind::Relay {
            return Ok(None);
        }
        let before = row.last_offset.saturating_sub(1);
        let entries = self.journal.read(tenant, row.id, before, 1).await?;
        Ok(entries.into_iter().next_back().map(|entry| entry.event))
    }

    /// Checks that the journal can be read.
    pub(crate) async fn check_journal(&self) -> Result<(), Error> {
        let absent = RunId::from_parts(0, 0);
        self.journal.find(&Tenant::local(), absent).await?;
        Ok(())
    }
}
