//! A journal whose disk can be full.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use engine::Tenant;
use engine::port::{
    Account, Commit, EncodedEvent, IdempotencyClaim, IdempotencyMatch, Journal, JournalEntry, JournalError,
    NewRun, RunEnd, RunRecord,
};
use ir::RunId;
use store::memory::MemoryJournal;

#[derive(Debug, Default)]
pub(crate) struct FullJournal {
    pub(crate) inner: MemoryJournal,
    pub(crate) full: AtomicBool,
}

impl FullJournal {
    fn check(&self) -> Result<(), JournalError> {
        if self.full.load(Ordering::Relaxed) {
            return Err(JournalError::from_backend("the disk is full"));
        }
        Ok(())
    }
}

#[async_trait]
impl Journal for FullJournal {
    fn create(&self, tenant: &Tenant, run: &NewRun) -> Commit {
        match self.check() {
            Ok(()) => self.inner.create(tenant, run),
            Err(error) => Commit::ready(Err(error)),
        }
    }

    fn append(&self, tenant: &Tenant, run: RunId, after: u64, events: &[EncodedEvent]) -> Commit {
        match self.check() {
            Ok(()) => self.inner.append(tenant, run, after, events),
            Err(error) => Commit::ready(Err(error)),
        }
    }

    fn finish(
        &self,
        tenant: &Tenant,
        run: RunId,
        after: u64,
        events: &[EncodedEvent],
        end: &RunEnd,
    ) -> Commit {
        match self.check() {
            Ok(()) => self.inner.finish(tenant, run, after, events, end),
            Err(error) => Commit::ready(Err(error)),
        }
    }

    fn open_account(&self, tenant: &Tenant, call: &NewRun) -> Result<(Account, Commit), JournalError> {
        self.check()?;
        self.inner.open_account(tenant, call)
    }

    async fn read(
        &self,
        tenant: &Tenant,
        run: RunId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<JournalEntry>, JournalError> {
        self.inner.read(tenant, run, after, limit).await
    }

    async fn find_chunk(
        &self,
        tenant: &Tenant,
        run: RunId,
        seq: u64,
    ) -> Result<Option<JournalEntry>, JournalError> {
        self.inner.find_chunk(tenant, run, seq).await
    }

    async fn find(&self, tenant: &Tenant, run: RunId) -> Result<Option<RunRecord>, JournalError> {
        self.inner.find(tenant, run).await
    }

    async fn find_by_idempotency_key(
        &self,
        tenant: &Tenant,
        client: &str,
        once: &IdempotencyClaim,
    ) -> Result<Option<IdempotencyMatch>, JournalError> {
        self.inner.find_by_idempotency_key(tenant, client, once).await
    }

    async fn unfinished(&self) -> Result<Vec<(Tenant, RunRecord)>, JournalError> {
        self.inner.unfinished().await
    }

    async fn count_recovery(&self, tenant: &Tenant, run: RunId) -> Result<u32, JournalError> {
        self.check()?;
        self.inner.count_recovery(tenant, run).await
    }
}
