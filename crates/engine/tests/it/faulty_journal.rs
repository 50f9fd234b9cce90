//! A journal whose disk can be full, and to which another process writes between two reads.

use std::sync::Mutex;
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
pub(crate) struct FaultyJournal {
    pub(crate) inner: MemoryJournal,
    pub(crate) full: AtomicBool,
    /// Written after the next read that finds nothing.
    pub(crate) late: Mutex<Option<LateWrite>>,
}

/// The first event of a run, and its end if it is the last one.
#[derive(Debug)]
pub(crate) struct LateWrite {
    pub(crate) event: EncodedEvent,
    pub(crate) end: Option<RunEnd>,
}

impl FaultyJournal {
    fn check(&self) -> Result<(), JournalError> {
        if self.full.load(Ordering::Relaxed) {
            return Err(JournalError::from_backend("the disk is full"));
        }
        Ok(())
    }
}

#[async_trait]
impl Journal for FaultyJournal {
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
        let page = self.inner.read(tenant, run, after, limit).await?;
        let late = self.late.lock().unwrap().take_if(|_| page.is_empty());
        if let Some(LateWrite { event, end }) = late {
            match end {
                None => self.inner.append(tenant, run, 0, &[event]).await?,
                Some(end) => self.inner.finish(tenant, run, 0, &[event], &end).await?,
            }
        }
        Ok(page)
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
}
