//! A journal that lives as long as its process.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use engine::Tenant;
use engine::port::{Entry, Finish, Journal, JournalError, NewRun, Rendered, RunRow, State};
use ir::RunId;

#[derive(Debug, Default)]
pub struct MemoryJournal {
    runs: Mutex<BTreeMap<(Tenant, RunId), Run>>,
}

#[derive(Debug)]
struct Run {
    new: NewRun,
    events: Vec<Rendered>,
    finished: Option<Finish>,
}

impl Run {
    fn last_offset(&self) -> u64 {
        self.events.len() as u64
    }

    fn row(&self) -> RunRow {
        RunRow {
            id: self.new.id,
            module: self.new.module.clone(),
            command: self.new.command.clone(),
            state: self.finished.as_ref().map_or(State::Running, Finish::state),
            created_at_ms: self.new.created_at_ms,
            finished: self.finished.clone(),
            last_offset: self.last_offset(),
        }
    }
}

impl MemoryJournal {
    fn runs(&self) -> MutexGuard<'_, BTreeMap<(Tenant, RunId), Run>> {
        // No code panics while it holds the lock, so a poisoned map is still whole.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(
        &self,
        tenant: &Tenant,
        id: RunId,
        after: u64,
        events: &[Rendered],
        finish: Option<&Finish>,
    ) -> Result<(), JournalError> {
        let mut runs = self.runs();
        let run = runs
            .get_mut(&(tenant.clone(), id))
            .ok_or(JournalError::Unknown(id))?;
        if run.finished.is_some() {
            return Err(JournalError::Ended(id));
        }
        if run.last_offset() != after {
            return Err(JournalError::Conflict(id));
        }
        run.events.extend_from_slice(events);
        run.finished = finish.cloned();
        Ok(())
    }
}

#[async_trait]
impl Journal for MemoryJournal {
    async fn create(&self, tenant: &Tenant, new: &NewRun) -> Result<(), JournalError> {
        let mut runs = self.runs();
        let key = (tenant.clone(), new.id);
        if runs.contains_key(&key) {
            return Err(JournalError::Exists(new.id));
        }
        let run = Run {
            new: new.clone(),
            events: Vec::new(),
            finished: None,
        };
        runs.insert(key, run);
        Ok(())
    }

    async fn append(
        &self,
        tenant: &Tenant,
        run: RunId,
        after: u64,
        events: &[Rendered],
    ) -> Result<(), JournalError> {
        self.write(tenant, run, after, events, None)
    }

    async fn finish(
        &self,
        tenant: &Tenant,
        run: RunId,
        after: u64,
        events: &[Rendered],
        finish: &Finish,
    ) -> Result<(), JournalError> {
        self.write(tenant, run, after, events, Some(finish))
    }

    async fn read(
        &self,
        tenant: &Tenant,
        id: RunId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Entry>, JournalError> {
        let runs = self.runs();
        let run = runs.get(&(tenant.clone(), id)).ok_or(JournalError::Unknown(id))?;
        let entries = (1..).zip(&run.events).filter(|(offset, _)| *offset > after);
        let entries = entries.take(limit).map(|(offset, event)| Entry {
            offset,
            event: event.clone(),
        });
        Ok(entries.collect())
    }

    async fn locate(&self, tenant: &Tenant, id: RunId, seq: u64) -> Result<Option<Entry>, JournalError> {
        let runs = self.runs();
        let run = runs.get(&(tenant.clone(), id)).ok_or(JournalError::Unknown(id))?;
        let mut entries = (1..).zip(&run.events);
        let found = entries.find(|(_, event)| event.seq == Some(seq));
        Ok(found.map(|(offset, event)| Entry {
            offset,
            event: event.clone(),
        }))
    }

    async fn find(&self, tenant: &Tenant, run: RunId) -> Result<Option<RunRow>, JournalError> {
        Ok(self.runs().get(&(tenant.clone(), run)).map(Run::row))
    }

    async fn unfinished(&self) -> Result<Vec<(Tenant, RunRow)>, JournalError> {
        let runs = self.runs();
        let open = runs.iter().filter(|(_, run)| run.finished.is_none());
        let mut rows: Vec<_> = open
            .map(|((tenant, _), run)| (tenant.clone(), run.row()))
            .collect();
        rows.sort_by_key(|(_, row)| (row.created_at_ms, row.id));
        Ok(rows)
    }
}
