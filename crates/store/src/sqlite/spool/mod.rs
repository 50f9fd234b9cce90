//! The accounts of calls. Calls do not wait for them: a booking is appended to a log, which survives a killed
//! process, and goes into the tables a moment later together with all that came meanwhile. Reading waits
//! until what was booked before is in the tables.

mod line;
mod log;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
mod text;
mod told;

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use engine::Tenant;
use engine::port::{EncodedEvent, JournalError, LifecycleRecord, RunEnd};
use ir::RunId;
use tokio::sync::{Notify, watch};
use tokio_util::task::TaskTracker;

pub(super) use self::line::{Line, Note};
use self::log::{Leftover, Log};
pub(super) use self::told::{Held, Told};
use super::writer::Writer;
use crate::limits;

#[derive(Debug)]
pub(super) struct Calls(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    writer: Writer,
    desk: Mutex<Desk>,
    /// There is something to do.
    wake: Arc<Notify>,
    /// A reader waits for it to be done.
    hurry: Arc<Notify>,
    /// How many bookings were tried, and whether the last of them got through.
    done: watch::Sender<Done>,
    tasks: TaskTracker,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Done {
    count: u64,
    fault: Option<Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Full,
    Storage,
}

#[derive(Debug, Default)]
struct Desk {
    waiting: Vec<Line>,
    /// On their way into the tables.
    carried: Arc<[Line]>,
    booked: u64,
    /// The runs that were entered and are not in the tables yet.
    begun: HashMap<RunId, Begun>,
    /// What the log did not take, until the run that put it asks.
    lost: HashMap<RunId, io::Error>,
    /// How often lines were carried away.
    turn: u64,
    log: Option<Log>,
    /// What killed servers have left behind, as long as it waits. Each is booked separately: some lines may
    /// be in two.
    leftovers: Vec<(Leftover, Arc<[Line]>)>,
    /// A task carries bookings to the tables.
    worked: bool,
    fault: Option<Fault>,
    closed: bool,
}

#[derive(Debug)]
struct Begun {
    tenant: Tenant,
    /// When it was entered. From the next turn on others may know of it.
    turn: u64,
    /// Where its events end; `None` when they are written elsewhere, or there will be no more.
    offset: Option<u64>,
    bytes: usize,
}

/// What a run says next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words<'a> {
    pub(super) after: u64,
    pub(super) events: &'a [EncodedEvent],
    pub(super) end: Option<&'a RunEnd>,
}

impl Calls {
    pub(super) fn new(path: PathBuf, writer: Writer) -> Self {
        Self(Arc::new(Shared {
            path,
            writer,
            desk: Mutex::default(),
            wake: Arc::default(),
            hurry: Arc::default(),
            done: watch::Sender::default(),
            tasks: TaskTracker::new(),
        }))
    }

    /// Books without waiting.
    pub(super) fn book(&self, tenant: &Tenant, booking: LifecycleRecord) -> Result<(), JournalError> {
        let run = booking.run();
        self.note(tenant, booking)?;
        self.commit(run)
    }

    /// What was noted of this run is in the log, and so is all that others have noted meanwhile.
    pub(super) fn commit(&self, run: RunId) -> Result<(), JournalError> {
        let mut desk = self.0.desk();
        desk.flush();
        desk.accepted(run)
    }

    /// Books with others: the log has it once it is committed. Refuses while the tables take nothing: what is not
    /// accounted for must not begin. What has begun is booked all the same.
    pub(super) fn note(&self, tenant: &Tenant, booking: LifecycleRecord) -> Result<(), JournalError> {
        let shared = &self.0;
        let mut desk = shared.desk();
        if let (LifecycleRecord::Started(_), Some(fault)) = (&booking, desk.fault) {
            return Err(fault.into());
        }
        if desk.closed || desk.waiting.len() >= limits::CALLS_WAITING_MAX {
            return Err(JournalError::Full);
        }
        if desk.log.is_none() {
            desk.log = Some(Log::create(&shared.path).map_err(JournalError::from_backend)?);
        }
        let (turn, tenant) = (desk.turn, tenant.clone());
        let begun = match &booking {
            LifecycleRecord::Started(new) => Some(new.id),
            LifecycleRecord::Ended { run, .. } => {
                desk.leave(*run);
                None
            }
        };
        desk.put(Line {
            tenant: tenant.clone(),
            note: Note::Booked(booking),
        })?;
        if let Some(run) = begun {
            let begun = Begun {
                tenant,
                turn,
                offset: Some(0),
                bytes: 0,
            };
            desk.begun.entry(run).or_insert(begun);
        }
        // Only now: what is lost must not be known as begun.
        if desk.log.as_ref().map_or(0, Log::added_bytes) > limits::CALLS_ADDED_BYTES_MAX {
            desk.flush();
        }
        self.have_carried(desk);
        Ok(())
    }

    /// Ensures that a task carries bookings to the tables, and wakes it.
    fn have_carried(&self, mut desk: MutexGuard<'_, Desk>) {
        let shared = &self.0;
        if !std::mem::replace(&mut desk.worked, true) {
            let work = work(Arc::downgrade(shared), shared.wake.clone(), shared.hurry.clone());
            shared.tasks.spawn(work);
        }
        drop(desk);
        shared.wake.notify_one();
    }

    /// Takes what a run says without waiting, as long as no reader can know of the run: it was entered here
    /// and is not on its way into the tables. Returns whether it took them.
    pub(super) fn say(&self, tenant: &Tenant, run: RunId, words: Words<'_>) -> Result<bool, JournalError> {
        let mut desk = self.0.desk();
        let turn = desk.turn;
        let more: usize = words.events.iter().map(|event| event.body.len()).sum();
        if desk.closed || desk.fault.is_some() || desk.waiting.len() >= limits::CALLS_WAITING_MAX {
            return Ok(false);
        }
        let Some(begun) = desk.begun.get(&run) else {
            return Ok(false);
        };
        let bytes = begun.bytes + more;
        let ours = begun.turn == turn && begun.offset == Some(words.after) && begun.tenant == *tenant;
        if !ours || bytes > limits::SPOOL_RUN_BYTES_MAX {
            return Ok(false);
        }
        desk.put(Line {
            tenant: tenant.clone(),
            note: Note::Said {
                run,
                events: words.events.to_vec(),
                end: words.end.cloned(),
            },
        })?;
        desk.flush();
        desk.accepted(run)?;
        let offset = words.after + words.events.len() as u64;
        if let Some(begun) = desk.begun.get_mut(&run) {
            begun.bytes = bytes;
            begun.offset = words.end.is_none().then_some(offset);
        }
        Ok(true)
    }

    /// How a run began, if that may not be in the tables yet: the next writer brings it along, and from then
    /// on writes all of it.
    pub(super) fn take_over(&self, tenant: &Tenant, run: RunId) -> Option<Held> {
        let mut desk = self.0.desk();
        if desk.begun.get(&run)?.tenant != *tenant {
            return None;
        }
        desk.leave(run);
        Some(desk.held(tenant, run))
    }

    /// All that is known about a run and may not be in the tables yet.
    pub(super) fn held(&self, tenant: &Tenant, run: RunId) -> Held {
        self.0.desk().held(tenant, run)
    }

    /// The runs that were entered and may not be in the tables yet.
    pub(super) fn begun(&self) -> Vec<(Tenant, RunId)> {
        let desk = self.0.desk();
        let begun = desk.begun.iter();
        begun.map(|(run, begun)| (begun.tenant.clone(), *run)).collect()
    }

    /// Returns when everything that was booked before is in the tables.
    pub(super) async fn settle(&self) -> Result<(), JournalError> {
        let shared = &self.0;
        let mut done = shared.done.subscribe();
        let booked = shared.desk().booked;
        if done.borrow().count >= booked {
            return Ok(());
        }
        shared.wake.notify_one();
        shared.hurry.notify_one();
        let seen = done.wait_for(|done| done.count >= booked || done.fault.is_some());
        let fault = seen.await.map_err(JournalError::from_backend)?.fault;
        fault.map_or(Ok(()), |fault| Err(fault.into()))
    }

    /// Carries what is left and books nothing more. What the tables do not take now is in the log, for the
    /// next process that opens them.
    pub(super) async fn close(&self) {
        self.settle().await.ok();
        self.0.desk().closed = true;
        self.0.wake.notify_one();
        self.0.hurry.notify_one();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// Takes in what killed servers have left behind. What the tables do not take waits like any other booking, and its
    /// file stays until then.
    pub(super) async fn pick_up(&self) -> Result<(), JournalError> {
        for mut left in Leftover::find(&self.0.path).map_err(JournalError::from_backend)? {
            let lines: Arc<[Line]> = Arc::from(left.lines().map_err(JournalError::from_backend)?);
            let booked = match lines.is_empty() {
                true => Ok(()),
                false => self.0.writer.book(lines.clone()).await,
            };
            match booked {
                Ok(()) => left.remove().map_err(JournalError::from_backend)?,
                Err(error) => self.adopt(left, lines, Fault::of(&error)),
            }
        }
        Ok(())
    }

    fn adopt(&self, left: Leftover, lines: Arc<[Line]>, fault: Fault) {
        let mut desk = self.0.desk();
        for line in &*lines {
            if let Note::Booked(LifecycleRecord::Started(new)) = &line.note {
                let begun = Begun {
                    tenant: line.tenant.clone(),
                    turn: desk.turn,
                    offset: None,
                    bytes: 0,
                };
                desk.begun.entry(new.id).or_insert(begun);
            }
        }
        desk.booked += lines.len() as u64;
        desk.leftovers.push((left, lines));
        desk.fault = Some(fault);
        self.0.done.send_modify(|done| done.fault = Some(fault));
        self.have_carried(desk);
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        // Ends the task that carries bookings.
        self.0.wake.notify_one();
        self.0.hurry.notify_one();
    }
}

impl Desk {
    /// On its way into the log, and behind that into the tables.
    fn put(&mut self, line: Line) -> Result<(), JournalError> {
        if let Some(log) = &mut self.log {
            log.add(&line).map_err(JournalError::from_backend)?;
        }
        self.waiting.push(line);
        self.booked += 1;
        Ok(())
    }

    /// Into the log with what was put: what is there survives. What the log does not take never happened.
    fn flush(&mut self) {
        let Some(log) = &mut self.log else { return };
        let first = self.waiting.len().saturating_sub(log.added());
        for (place, error) in log.flush().into_iter().rev() {
            let line = self.waiting.remove(first + place);
            let run = line.note.run();
            if let Note::Booked(LifecycleRecord::Started(_)) = line.note {
                self.begun.remove(&run);
            }
            self.lost.insert(run, error);
        }
    }

    /// Whether the log has all that was put of this run.
    fn accepted(&mut self, run: RunId) -> Result<(), JournalError> {
        match self.lost.is_empty() {
            true => Ok(()),
            false => self
                .lost
                .remove(&run)
                .map_or(Ok(()), |error| Err(JournalError::from_backend(error))),
        }
    }

    /// These lines are in the tables.
    fn forget(&mut self, lines: &[Line]) {
        for line in lines {
            if let Note::Booked(LifecycleRecord::Started(new)) = &line.note {
                self.begun.remove(&new.id);
            }
        }
    }

    /// Nothing more of what the run says comes here.
    fn leave(&mut self, run: RunId) {
        if let Some(begun) = self.begun.get_mut(&run) {
            begun.offset = None;
        }
    }

    fn held(&self, tenant: &Tenant, run: RunId) -> Held {
        let mut told = Told::default();
        let left = self.leftovers.iter().flat_map(|(_, lines)| &**lines);
        for line in left.chain(&*self.carried).chain(&self.waiting) {
            if line.is_of(tenant, run) {
                told.add(&line.note);
            }
        }
        told.into()
    }
}

impl Shared {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        // No code panics while it holds the lock.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries what is waiting to the tables. Returns whether there was anything.
    async fn carry(&self) -> bool {
        if let Err(error) = self.carry_leftovers().await {
            self.tell(Some(Fault::of(&error)), 0);
            return true;
        }
        let (lines, booked) = {
            let mut desk = self.desk();
            desk.flush();
            if desk.waiting.is_empty() {
                // What else was booked since the last time, the log did not take: no reader need wait for it.
                let booked = desk.booked;
                drop(desk);
                self.tell(None, booked);
                return false;
            }
            if let Some(log) = &mut desk.log {
                log.turn();
            }
            desk.turn += 1;
            desk.carried = Arc::from(std::mem::take(&mut desk.waiting));
            (desk.carried.clone(), desk.booked)
        };
        let written = self.writer.book(lines.clone()).await;
        {
            let mut desk = self.desk();
            desk.carried = Arc::default();
            match &written {
                Ok(()) => {
                    drop(desk.log.as_mut().map(Log::clear));
                    desk.forget(&lines);
                }
                Err(_) => {
                    drop(desk.log.as_mut().map(Log::turn_back));
                    let newer = std::mem::replace(&mut desk.waiting, lines.to_vec());
                    desk.waiting.extend(newer);
                }
            }
        }
        self.tell(written.as_ref().err().map(Fault::of), booked);
        true
    }

    async fn carry_leftovers(&self) -> Result<(), JournalError> {
        loop {
            let first = self.desk().leftovers.first().map(|(_, lines)| lines.clone());
            let Some(lines) = first else { return Ok(()) };
            self.writer.book(lines.clone()).await?;
            let mut desk = self.desk();
            let (left, _) = desk.leftovers.remove(0);
            desk.forget(&lines);
            // One that stays is found again, and booked again without harm.
            left.remove().ok();
        }
    }

    /// How it went, with so many bookings done if it went well.
    fn tell(&self, fault: Option<Fault>, booked: u64) {
        self.desk().fault = fault;
        self.done.send_if_modified(|done| {
            let before = *done;
            done.fault = fault;
            if fault.is_none() {
                done.count = booked;
            }
            *done != before
        });
    }
}

/// Carries bookings for as long as there is anyone to book. It pauses before each step, so that many share one, and
/// what a quick run says comes while the run is still ours alone.
async fn work(shared: Weak<Shared>, wake: Arc<Notify>, hurry: Arc<Notify>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(limits::SPOOL_FLUSH_INTERVAL) => {}
            () = hurry.notified() => {}
        }
        let Some(strong) = shared.upgrade() else { return };
        let carried = strong.carry().await;
        let fault = {
            let desk = strong.desk();
            if desk.closed {
                return;
            }
            desk.fault
        };
        drop(strong);
        match fault {
            Some(_) => tokio::time::sleep(limits::CALLS_RETRY).await,
            None if carried => {}
            None => wake.notified().await,
        }
    }
}

impl Fault {
    fn of(error: &JournalError) -> Self {
        match error {
            JournalError::Full => Self::Full,
            _ => Self::Storage,
        }
    }
}

impl From<Fault> for JournalError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Full => Self::Full,
            Fault::Storage => Self::from_backend("the accounts of calls could not be written"),
        }
    }
}
