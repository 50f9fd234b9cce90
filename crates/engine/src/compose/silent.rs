//! A journal for a step, which keeps nothing but the step's end: the run that it belongs to has a journal, and after
//! a crash it is that run which is taken up again. However long the end is, it is here for whoever made the step.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use ir::RunId;
use tenancy::Tenant;

use crate::port::{Booking, End, Entry, Journal, JournalError, Named, NewRun, Once, Rendered, RunRow};

#[derive(Debug, Default)]
pub(super) struct Silent {
    last: Mutex<Option<Rendered>>,
}

impl Silent {
    /// The last event, once there is one.
    pub(super) fn last(&self) -> Option<Rendered> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Journal for Silent {
    async fn create(&self, _: &Tenant, _: &NewRun) -> Result<(), JournalError> {
        Ok(())
    }

    async fn append(&self, _: &Tenant, _: RunId, _: u64, _: &[Rendered]) -> Result<(), JournalError> {
        Ok(())
    }

    async fn finish(
        &self,
        _: &Tenant,
        _: RunId,
        _: u64,
        events: &[Rendered],
        _: &End,
    ) -> Result<(), JournalError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = events.last().cloned();
        Ok(())
    }

    fn book(&self, _: &Tenant, _: Booking) -> Result<(), JournalError> {
        Ok(())
    }

    async fn read(&self, _: &Tenant, _: RunId, _: u64, _: usize) -> Result<Vec<Entry>, JournalError> {
        Ok(Vec::new())
    }

    async fn locate(&self, _: &Tenant, _: RunId, _: u64) -> Result<Option<Entry>, JournalError> {
        Ok(None)
    }

    async fn find(&self, _: &Tenant, _: RunId) -> Result<Option<RunRow>, JournalError> {
        Ok(None)
    }

    async fn named(&self, _: &Tenant, _: &str, _: &Once) -> Result<Option<Named>, JournalError> {
        Ok(None)
    }

    async fn unfinished(&self) -> Result<Vec<(Tenant, RunRow)>, JournalError> {
        Ok(Vec::new())
    }
}
