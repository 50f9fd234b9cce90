//! A journal with the lifetime of its process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use engine::Tenant;
use engine::port::{
    Account, AttemptUsage, Commit, EncodedEvent, IdempotencyClaim, IdempotencyMatch, Journal, JournalEntry,
    JournalError, NewRun, Review, RunEnd, RunOutcome, RunRecord, RunState,
};
use ir::RunId;

#[derive(Clone, Debug, Default)]
pub struct MemoryJournal {
    pub(super) shelf: Arc<Mutex<Tables>>,
}

#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) runs: BTreeMap<(Tenant, RunId), Run>,
    /// Retained when its run is pruned.
    pub(super) spent: Vec<UsageRow>,
}

/// Usage of an attempt, with the run it belongs to.
#[derive(Debug)]
pub(super) struct UsageRow {
    pub(super) tenant: Tenant,
    pub(super) run: RunId,
    pub(super) client: String,
    pub(super) module: Option<String>,
    pub(super) at_ms: u64,
    pub(super) spent: AttemptUsage,
}

#[derive(Debug)]
pub(super) struct Run {
    pub(super) new: NewRun,
    pub(super) events: Vec<EncodedEvent>,
    pub(super) finished: Option<RunOutcome>,
    pub(super) review: Option<Review>,
    recoveries: u32,
}

impl Run {
    fn new(new: &NewRun) -> Self {
        Self {
            new: new.clone(),
            events: Vec::new(),
            finished: None,
            review: None,
            recoveries: 0,
        }
    }

    fn last_offset(&self) -> u64 {
        self.events.len() as u64
    }

    pub(super) fn row(&self) -> RunRecord {
        RunRecord {
            id: self.new.id,
            kind: self.new.kind.clone(),
            client: self.new.client.clone(),
            command: self.new.command.clone(),
            state: self
                .finished
                .as_ref()
                .map_or(RunState::Running, RunOutcome::state),
            created_at_ms: self.new.created_at_ms,
            finished: self.finished.clone(),
            review: self.review.clone(),
            last_offset: self.last_offset(),
        }
    }
}

impl MemoryJournal {
    pub(super) fn shelf(&self) -> MutexGuard<'_, Tables> {
        // No code panics while it holds the lock, so poisoned tables are still consistent.
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn insert(&self, tenant: &Tenant, new: &NewRun) -> Result<(), JournalError> {
        let mut shelf = self.shelf();
        let runs = &mut shelf.runs;
        if let Some(once) = &new.once {
            if let Some(named) = holder(runs, tenant, &new.client, once) {
                return Err(JournalError::DuplicateKey(named));
            }
            // An expired key is released.
            let held = |run: &Run| run.new.once.as_ref().is_some_and(|held| held.key == once.key);
            for ((owner, _), run) in runs.iter_mut() {
                if owner == tenant && run.new.client == new.client && held(run) {
                    run.new.once = None;
                }
            }
        }
        let key = (tenant.clone(), new.id);
        if runs.contains_key(&key) {
            return Err(JournalError::Exists(new.id));
        }
        runs.insert(key, Run::new(new));
        Ok(())
    }

    fn write(
        &self,
        tenant: &Tenant,
        id: RunId,
        after: u64,
        events: &[EncodedEvent],
        end: Option<&RunEnd>,
    ) -> Result<(), JournalError> {
        let mut shelf = self.shelf();
        let shelf = &mut *shelf;
        let run = shelf
            .runs
            .get_mut(&(tenant.clone(), id))
            .ok_or(JournalError::Unknown(id))?;
        if run.finished.is_some() {
            return Err(JournalError::Ended(id));
        }
        if run.last_offset() != after {
            return Err(JournalError::Fenced(id));
        }
        run.events.extend_from_slice(events);
        let Some(end) = end else { return Ok(()) };
        run.finished = Some(end.finish.clone());
        run.review = end.review.clone().map(|reason| Review {
            reason,
            verdict: None,
        });
        shelf
            .spent
            .extend(end.usage.iter().cloned().map(|spent| UsageRow {
                tenant: tenant.clone(),
                run: id,
                client: run.new.client.clone(),
                module: run.new.kind.module().map(String::from),
                at_ms: end.finish.at_ms,
                spent,
            }));
        Ok(())
    }
}

/// The run that claims this idempotency key.
fn holder(
    runs: &BTreeMap<(Tenant, RunId), Run>,
    tenant: &Tenant,
    client: &str,
    once: &IdempotencyClaim,
) -> Option<IdempotencyMatch> {
    let mut mine = runs
        .iter()
        .filter(|((owner, _), run)| owner == tenant && run.new.client == client)
        .filter(|(_, run)| run.new.created_at_ms >= once.since_ms);
    mine.find_map(|((_, id), run)| {
        let held = run.new.once.as_ref().filter(|held| held.key == once.key)?;
        Some(IdempotencyMatch {
            run: *id,
            same_request: held.fingerprint == once.fingerprint,
        })
    })
}

#[async_trait]
impl Journal for MemoryJournal {
    fn create(&self, tenant: &Tenant, new: &NewRun) -> Commit {
        Commit::ready(self.insert(tenant, new))
    }

    fn append(&self, tenant: &Tenant, run: RunId, after: u64, events: &[EncodedEvent]) -> Commit {
        Commit::ready(self.write(tenant, run, after, events, None))
    }

    fn finish(
        &self,
        tenant: &Tenant,
        run: RunId,
        after: u64,
        events: &[EncodedEvent],
        end: &RunEnd,
    ) -> Commit {
        Commit::ready(self.write(tenant, run, after, events, Some(end)))
    }

    fn open_account(&self, tenant: &Tenant, call: &NewRun) -> Result<(Account, Commit), JournalError> {
        let started = Commit::ready(self.insert(tenant, call));
        let (journal, tenant, run) = (self.clone(), tenant.clone(), call.id);
        let account = Account::new(move |end| {
            // A run that has events is ended by its writer.
            journal.write(&tenant, run, 0, &[], Some(&end)).ok();
        });
        Ok((account, started))
    }

    async fn read(
        &self,
        tenant: &Tenant,
        id: RunId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<JournalEntry>, JournalError> {
        let shelf = self.shelf();
        let run = shelf
            .runs
            .get(&(tenant.clone(), id))
            .ok_or(JournalError::Unknown(id))?;
        let entries = (1..).zip(&run.events).filter(|(offset, _)| *offset > after);
        let entries = entries.take(limit).map(|(offset, event)| JournalEntry {
            offset,
            event: event.clone(),
        });
        Ok(entries.collect())
    }

    async fn find_chunk(
        &self,
        tenant: &Tenant,
        id: RunId,
        seq: u64,
    ) -> Result<Option<JournalEntry>, JournalError> {
        let shelf = self.shelf();
        let run = shelf
            .runs
            .get(&(tenant.clone(), id))
            .ok_or(JournalError::Unknown(id))?;
        let mut entries = (1..).zip(&run.events);
        let found = entries.find(|(_, event)| event.seq == Some(seq));
        Ok(found.map(|(offset, event)| JournalEntry {
            offset,
            event: event.clone(),
        }))
    }

    async fn find(&self, tenant: &Tenant, run: RunId) -> Result<Option<RunRecord>, JournalError> {
        Ok(self.shelf().runs.get(&(tenant.clone(), run)).map(Run::row))
    }

    async fn find_by_idempotency_key(
        &self,
        tenant: &Tenant,
        client: &str,
        once: &IdempotencyClaim,
    ) -> Result<Option<IdempotencyMatch>, JournalError> {
        Ok(holder(&self.shelf().runs, tenant, client, once))
    }

    async fn unfinished(&self) -> Result<Vec<(Tenant, RunRecord)>, JournalError> {
        let shelf = self.shelf();
        let open = shelf.runs.iter().filter(|(_, run)| run.finished.is_none());
        let mut rows: Vec<_> = open
            .map(|((tenant, _), run)| (tenant.clone(), run.row()))
            .collect();
        rows.sort_by_key(|(_, row)| (row.created_at_ms, row.id));
        Ok(rows)
    }

    async fn count_recovery(&self, tenant: &Tenant, id: RunId) -> Result<u32, JournalError> {
        let mut shelf = self.shelf();
        let run = shelf.runs.get_mut(&(tenant.clone(), id));
        let run = run.filter(|run| run.finished.is_none());
        let run = run.ok_or(JournalError::Unknown(id))?;
        run.recoveries += 1;
        Ok(run.recoveries)
    }
}
