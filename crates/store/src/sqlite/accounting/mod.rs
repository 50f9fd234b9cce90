//! The accounting log of relayed calls: a start and an end record for each, appended to a file beside the
//! database by a thread of its own, and carried into the tables a moment later together with all that came
//! meanwhile. A call waits for its start record only; a killed process leaves the file to the next one. Who
//! reads the tables first waits until the records of ended calls are in them.

mod apply;
mod decoded_log;
mod log;
mod quarantine;
mod record;
mod segment;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use engine::Tenant;
use engine::port::{Account, Commit, JournalError, NewRun};
use tokio::sync::{Semaphore, oneshot};

use self::log::{Log, LogRequest};
pub use self::quarantine::{QuarantinedLog, quarantined};
use self::record::Record;
use self::segment::LogSegment;
use super::row::closed;
use super::writer::Writer;
use crate::{Durability, limits};

#[derive(Debug)]
pub(super) struct Accounting {
    messages: Sender<LogRequest>,
    /// One for each open account: the place of its end record in the queue is reserved.
    places: Arc<Semaphore>,
    /// Records that are not in the tables yet.
    pending: Arc<AtomicUsize>,
}

impl Accounting {
    pub(super) fn start(
        database: &Path,
        writer: Writer,
        durability: Durability,
    ) -> Result<Self, JournalError> {
        let database = database.to_owned();
        Self::start_with(writer, move || LogSegment::create(&database, durability))
    }

    fn start_with(
        writer: Writer,
        create: impl Fn() -> std::io::Result<LogSegment> + Send + 'static,
    ) -> Result<Self, JournalError> {
        let (messages, received) = channel();
        let pending = Arc::<AtomicUsize>::default();
        let log = Log::new(Box::new(create), writer, messages.clone(), pending.clone());
        thread::Builder::new()
            .name(String::from("accounting"))
            .spawn(move || log.work(&received))
            .map_err(JournalError::from_backend)?;
        Ok(Self {
            messages,
            places: Arc::new(Semaphore::new(limits::ACCOUNTS_OPEN_MAX)),
            pending,
        })
    }

    /// The handle resolves when the start record is in the log.
    pub(super) fn open(&self, tenant: &Tenant, new: &NewRun) -> Result<(Account, Commit), JournalError> {
        let place = self.places.clone().try_acquire_owned();
        let place = place.map_err(|_| JournalError::from_backend("too many calls are in progress"))?;
        let (done, written) = oneshot::channel();
        self.pending.fetch_add(1, Ordering::SeqCst);
        let record = Record::start(tenant, new);
        self.send(LogRequest::Start { record, done })?;
        let (messages, pending) = (self.messages.clone(), self.pending.clone());
        let (tenant, run) = (tenant.clone(), new.id);
        let account = Account::new(move |end| {
            pending.fetch_add(1, Ordering::SeqCst);
            let record = Record::end(&tenant, run, end);
            // Without the thread the server has stopped: the next one closes the call.
            messages.send(LogRequest::End { record, place }).ok();
        });
        let started = Commit::new(async { written.await.map_err(|_| closed())? });
        Ok((account, started))
    }

    /// Returns when all records that were sent before are in the tables.
    pub(super) async fn settle(&self) -> Result<(), JournalError> {
        if self.pending.load(Ordering::SeqCst) == 0 {
            return Ok(());
        }
        let (done, settled) = oneshot::channel();
        self.send(LogRequest::Settle(done))?;
        settled.await.map_err(|_| closed())?
    }

    /// Carries over what killed processes have left. It counts as sent before the next [`Self::settle`].
    pub(super) async fn adopt(&self, database: &Path) -> Result<(), JournalError> {
        let database = database.to_owned();
        let orphans = tokio::task::spawn_blocking(move || LogSegment::orphans(&database));
        let orphans = orphans.await.map_err(JournalError::from_backend)?;
        let orphans = orphans.map_err(JournalError::from_backend)?;
        let records: usize = orphans.iter().map(|(_, records)| records.len()).sum();
        // An empty segment is removed, too.
        self.pending.fetch_add(records, Ordering::SeqCst);
        if !orphans.is_empty() {
            self.send(LogRequest::Adopt(orphans))?;
        }
        Ok(())
    }

    /// Applies what is left and ends the thread. What could not be applied stays for the next process.
    pub(super) async fn close(&self) {
        let (done, ended) = oneshot::channel();
        if self.send(LogRequest::Close(done)).is_ok() {
            ended.await.ok();
        }
    }

    fn send(&self, message: LogRequest) -> Result<(), JournalError> {
        self.messages.send(message).map_err(|_| closed())
    }
}

impl Drop for Accounting {
    fn drop(&mut self) {
        // The thread may have ended already.
        self.send(LogRequest::Stop).ok();
    }
}
