//! The accounts of calls. Nobody waits for them: a booking is appended to a log, which survives a killed
//! process, and goes into the tables a moment later together with all that came meanwhile. Reading waits
//! until what was booked before is in the tables.

mod line;
mod log;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use engine::Tenant;
use engine::port::{Booking, End, JournalError, NewRun, Rendered};
use ir::RunId;
use tokio::sync::{Notify, watch};
use tokio_util::task::TaskTracker;

pub(super) use self::line::{Line, Note};
use self::log::{Leftover, Log};
use super::writer::{Write, Writer};
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
    /// Somebody waits for it to be done.
    hurry: Arc<Notify>,
    /// How many bookings were tried, and whether the last of them got through.
    done: watch::Sender<Done>,
    tasks: TaskTracker,
}

#[derive(Clone, Copy, Debug, Default)]
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
    /// The runs whose first events are among the lines.
    opened: HashSet<RunId>,
    log: Option<Log>,
    /// Somebody carries bookings to the tables.
    worked: bool,
    fault: Option<Fault>,
    closed: bool,
}

/// The beginning of a run that may not be in the tables yet.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) new: NewRun,
    pub(super) events: Vec<Rendered>,
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

    /// Books without waiting. Refuses while the tables take nothing: what is not accounted for must not
    /// begin. What has begun is booked all the same.
    pub(super) fn book(&self, tenant: &Tenant, booking: Booking) -> Result<(), JournalError> {
        let shared = &self.0;
        let mut desk = shared.desk();
        if let (Booking::Enter(_), Some(fault)) = (&booking, desk.fault) {
            return Err(fault.into());
        }
        if desk.closed || desk.waiting.len() >= limits::CALLS_WAITING_MAX {
            return Err(JournalError::Full);
        }
        if desk.log.is_none() {
            desk.log = Some(Log::create(&shared.path).map_err(JournalError::storage)?);
        }
        desk.put(Line {
            tenant: tenant.clone(),
            note: Note::Booked(booking),
        })?;
        if !std::mem::replace(&mut desk.worked, true) {
            let work = work(Arc::downgrade(shared), shared.wake.clone(), shared.hurry.clone());
            shared.tasks.spawn(work);
        }
        drop(desk);
        shared.wake.notify_one();
        Ok(())
    }

    /// Takes the first events of a run without waiting, as long as nobody else can know of it: it was entered here
    /// and is not on its way into the tables. Returns whether it took them.
    pub(super) fn open(
        &self,
        tenant: &Tenant,
        run: RunId,
        events: &[Rendered],
    ) -> Result<bool, JournalError> {
        let bytes: usize = events.iter().map(|event| event.body.len()).sum();
        let mut desk = self.0.desk();
        let latest = desk.waiting.iter().rev().find(|line| line.is_of(tenant, run));
        let entered = latest.is_some_and(|line| matches!(line.note, Note::Booked(Booking::Enter(_))));
        let free = !desk.closed && desk.fault.is_none() && bytes <= limits::CALLS_OPENING_BYTES_MAX;
        if !entered || !free {
            return Ok(false);
        }
        desk.put(Line {
            tenant: tenant.clone(),
            note: Note::Opened {
                run,
                events: events.to_vec(),
            },
        })?;
        desk.opened.insert(run);
        Ok(true)
    }

    /// How a run began, if that may not be in the tables yet: whoever writes behind it brings it along. `after` is
    /// where that writer goes on.
    pub(super) fn opening(&self, tenant: &Tenant, run: RunId, after: u64) -> Option<Opening> {
        let desk = self.0.desk();
        if after > 0 && !desk.opened.contains(&run) {
            return None;
        }
        let new = desk.held(tenant, run, |note| match note {
            Note::Booked(Booking::Enter(new)) => Some(new.clone()),
            _ => None,
        })?;
        let events = desk.held(tenant, run, |note| match note {
            Note::Opened { events, .. } => Some(events.clone()),
            Note::Booked(_) => None,
        });
        let events = events.unwrap_or_default();
        Some(Opening { new, events })
    }

    /// How a run ended, if it may not be in the tables yet.
    pub(super) fn closed(&self, tenant: &Tenant, run: RunId) -> Option<(Option<Rendered>, End)> {
        self.0.desk().held(tenant, run, |note| match note {
            Note::Booked(Booking::Close { last, end, .. }) => Some((last.clone(), end.clone())),
            _ => None,
        })
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
        let fault = seen.await.map_err(JournalError::storage)?.fault;
        fault.map_or(Ok(()), |fault| Err(fault.into()))
    }

    /// Carries what is left and books nothing more. What the tables do not take now is in the log, for
    /// whoever opens them next.
    pub(super) async fn close(&self) {
        self.settle().await.ok();
        self.0.desk().closed = true;
        self.0.wake.notify_one();
        self.0.hurry.notify_one();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// Takes in what killed servers have left behind.
    pub(super) async fn pick_up(&self) -> Result<(), JournalError> {
        for mut left in Leftover::find(&self.0.path).map_err(JournalError::storage)? {
            let lines = left.lines().map_err(JournalError::storage)?;
            write(&self.0.writer, &Arc::from(lines)).await?;
            left.remove().map_err(JournalError::storage)?;
        }
        Ok(())
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        // Whoever carries bookings sees that there is nobody left.
        self.0.wake.notify_one();
        self.0.hurry.notify_one();
    }
}

impl Desk {
    /// Into the log first: what is there survives.
    fn put(&mut self, line: Line) -> Result<(), JournalError> {
        if let Some(log) = &mut self.log {
            log.append(&line).map_err(JournalError::storage)?;
        }
        self.waiting.push(line);
        self.booked += 1;
        Ok(())
    }

    /// The latest line about a run that is what is looked for.
    fn held<T>(&self, tenant: &Tenant, run: RunId, is: impl Fn(&Note) -> Option<T>) -> Option<T> {
        let lines = self.waiting.iter().rev().chain(self.carried.iter().rev());
        let mut own = lines.filter(|line| line.is_of(tenant, run));
        own.find_map(|line| is(&line.note))
    }
}

impl Shared {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        // No code panics while it holds the lock.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries what is waiting to the tables. Returns whether there was anything.
    async fn carry(&self) -> bool {
        let (lines, booked) = {
            let mut desk = self.desk();
            if desk.waiting.is_empty() {
                return false;
            }
            if let Some(log) = &mut desk.log {
                log.turn();
            }
            desk.carried = Arc::from(std::mem::take(&mut desk.waiting));
            (desk.carried.clone(), desk.booked)
        };
        let written = write(&self.writer, &lines).await;
        let fault = match &written {
            Ok(()) => None,
            Err(JournalError::Full) => Some(Fault::Full),
            Err(_) => Some(Fault::Storage),
        };
        {
            let mut desk = self.desk();
            desk.carried = Arc::default();
            desk.fault = fault;
            match fault {
                None => {
                    drop(desk.log.as_mut().map(Log::clear));
                    for line in &*lines {
                        if let Note::Opened { run, .. } = &line.note {
                            desk.opened.remove(run);
                        }
                    }
                }
                Some(_) => {
                    drop(desk.log.as_mut().map(Log::turn_back));
                    let newer = std::mem::replace(&mut desk.waiting, lines.to_vec());
                    desk.waiting.extend(newer);
                }
            }
        }
        self.done.send_modify(|done| {
            done.fault = fault;
            if fault.is_none() {
                done.count = booked;
            }
        });
        true
    }
}

/// Carries bookings for as long as there is anyone to book. It pauses before each step, so that many share one, and
/// what a run says first comes while the run is still ours alone.
async fn work(shared: Weak<Shared>, wake: Arc<Notify>, hurry: Arc<Notify>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(limits::CALLS_PACE) => {}
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

impl From<Fault> for JournalError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Full => Self::Full,
            Fault::Storage => Self::storage("the accounts of calls could not be written"),
        }
    }
}

/// One step, all or nothing.
async fn write(writer: &Writer, lines: &Arc<[Line]>) -> Result<(), JournalError> {
    writer.write(Write::Book(lines.clone())).await
}
