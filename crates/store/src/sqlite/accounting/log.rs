//! The thread that writes the log. Start records of concurrent calls share one write. Records are applied in
//! chunks, so that runs write in between; a segment is removed once all its records are applied.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Instant;

use engine::port::JournalError;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::apply::apply;
use super::record::Record;
use super::segment::LogSegment;
use crate::limits;
use crate::sqlite::row::in_transaction;
use crate::sqlite::writer::Writer;

type Done = oneshot::Sender<Result<(), JournalError>>;

#[derive(Debug)]
pub(super) enum LogRequest {
    Start {
        record: Record,
        done: Done,
    },
    End {
        record: Record,
        /// Released when the record is received.
        place: OwnedSemaphorePermit,
    },
    Settle(Done),
    Adopt(Vec<(LogSegment, Vec<Record>)>),
    /// The oldest chunk of the oldest segment is in the tables, or failed to get there.
    Applied(Result<(), JournalError>),
    Close(oneshot::Sender<()>),
    /// Ends the thread; what is not applied stays for the next process.
    Stop,
}

pub(super) struct Log {
    create: Box<dyn Fn() -> io::Result<LogSegment> + Send>,
    writer: Writer,
    messages: Sender<LogRequest>,
    pending: Arc<AtomicUsize>,
    /// Receives new records; created when the first one arrives.
    active: Option<LogSegment>,
    /// The records of the active segment.
    records: Vec<Record>,
    /// Segments that receive no more records, oldest first.
    sealed: VecDeque<Sealed>,
    in_flight: bool,
    /// Those that wait for the records in the sealed segments.
    waiting: Vec<Done>,
    /// Those that wait for the records in the active segment, too.
    next_waiting: Vec<Done>,
    /// Why the last chunk could not be applied; new calls are refused meanwhile.
    failure: Option<Failure>,
    /// When the next chunk is applied, unless a caller waits for it.
    due: Instant,
    closing: Option<oneshot::Sender<()>>,
    is_stopped: bool,
}

#[derive(Debug)]
struct Sealed {
    /// Without a segment if none could be created.
    segment: Option<LogSegment>,
    records: Arc<[Record]>,
    applied: usize,
}

#[derive(Clone, Debug)]
enum Failure {
    Full,
    Other(String),
}

impl From<&JournalError> for Failure {
    fn from(error: &JournalError) -> Self {
        match error {
            JournalError::Full => Self::Full,
            error => Self::Other(error.to_string()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::Other(error.to_string()),
        }
    }
}

impl From<Failure> for JournalError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Full => Self::Full,
            Failure::Other(text) => Self::from_backend(text),
        }
    }
}

impl Log {
    pub(super) fn new(
        create: Box<dyn Fn() -> io::Result<LogSegment> + Send>,
        writer: Writer,
        messages: Sender<LogRequest>,
        pending: Arc<AtomicUsize>,
    ) -> Self {
        Self {
            create,
            writer,
            messages,
            pending,
            active: None,
            records: Vec::new(),
            sealed: VecDeque::new(),
            in_flight: false,
            waiting: Vec::new(),
            next_waiting: Vec::new(),
            failure: None,
            due: Instant::now(),
            closing: None,
            is_stopped: false,
        }
    }

    /// Works until it is closed.
    pub(super) fn work(mut self, received: &Receiver<LogRequest>) {
        loop {
            let first = match self.has_work() && !self.in_flight {
                true => received.recv_timeout(self.due.saturating_duration_since(Instant::now())),
                false => received.recv().map_err(RecvTimeoutError::from),
            };
            let batch = first.into_iter().chain(received.try_iter());
            let batch: Vec<LogRequest> = batch.take(limits::WRITE_BATCH_MAX).collect();
            self.receive(batch);
            if self.is_stopped {
                return;
            }
            if self.closing.is_some() && !self.in_flight && (!self.has_work() || self.failure.is_some()) {
                if self.records.is_empty()
                    && let Some(active) = self.active.take()
                {
                    active.remove();
                }
                self.closing.take().map(|done| done.send(()));
                return;
            }
            self.advance();
        }
    }

    fn has_work(&self) -> bool {
        !self.sealed.is_empty() || !self.records.is_empty()
    }

    fn receive(&mut self, batch: Vec<LogRequest>) {
        let (mut text, mut records, mut starts) = (Vec::new(), Vec::new(), Vec::new());
        for message in batch {
            match message {
                LogRequest::Start { record, done } => match &self.failure {
                    Some(failure) => {
                        self.pending.fetch_sub(1, Ordering::SeqCst);
                        done.send(Err(failure.clone().into())).ok();
                    }
                    None => {
                        record.encode(&mut text).ok();
                        starts.push((record, done));
                    }
                },
                LogRequest::End { record, place } => {
                    record.encode(&mut text).ok();
                    records.push(record);
                    drop(place);
                }
                LogRequest::Settle(done) => self.next_waiting.push(done),
                LogRequest::Adopt(orphans) => {
                    let sealed = orphans
                        .into_iter()
                        .map(|(segment, records)| Sealed::new(Some(segment), records));
                    self.sealed.extend(sealed);
                }
                LogRequest::Applied(result) => self.on_applied(result),
                LogRequest::Close(done) => {
                    // One more attempt.
                    self.failure = None;
                    self.closing = Some(done);
                }
                LogRequest::Stop => self.is_stopped = true,
            }
        }
        self.write(&text, records, starts);
    }

    /// One write for all records. If it fails, calls are not started; the ends of calls are applied without
    /// having been logged.
    fn write(&mut self, text: &[u8], ends: Vec<Record>, starts: Vec<(Record, Done)>) {
        if text.is_empty() {
            return;
        }
        if !self.has_work() {
            self.due = Instant::now() + limits::ACCOUNTS_APPLY_INTERVAL;
        }
        let written = self.append(text).map_err(Failure::from);
        for (record, done) in starts {
            match &written {
                Ok(()) => self.records.push(record),
                Err(_) => {
                    self.pending.fetch_sub(1, Ordering::SeqCst);
                }
            }
            done.send(written.clone().map_err(JournalError::from)).ok();
        }
        self.records.extend(ends);
    }

    fn append(&mut self, text: &[u8]) -> io::Result<()> {
        let mut active = match self.active.take() {
            Some(active) => active,
            None => (self.create)()?,
        };
        let written = active.append(text);
        self.active = Some(active);
        written
    }

    /// Applies the next chunk if it is time.
    fn advance(&mut self) {
        if self.in_flight {
            return;
        }
        let is_urgent = self.closing.is_some() || !self.waiting.is_empty() || !self.next_waiting.is_empty();
        if !is_urgent && Instant::now() < self.due {
            return;
        }
        if self.sealed.is_empty() {
            self.seal();
        }
        let Some(sealed) = self.sealed.front() else {
            self.reply(&Ok(()));
            return;
        };
        let (records, from) = (sealed.records.clone(), sealed.applied);
        let until = (from + limits::WRITE_BATCH_MAX).min(records.len());
        let messages = self.messages.clone();
        let queued = self.writer.queue(move |connection| {
            let chunk = records.get(from..until).unwrap_or_default();
            let applied = in_transaction(connection, |connection| apply(connection, chunk));
            // The thread waits for this message before it ends.
            messages.send(LogRequest::Applied(applied)).ok();
        });
        match queued {
            Ok(()) => self.in_flight = true,
            Err(error) => self.on_applied(Err(error)),
        }
    }

    /// The records so far become a sealed segment; the next record gets a new one.
    fn seal(&mut self) {
        self.waiting.append(&mut self.next_waiting);
        if self.records.is_empty() {
            return;
        }
        let records = std::mem::take(&mut self.records);
        self.sealed.push_back(Sealed::new(self.active.take(), records));
    }

    fn on_applied(&mut self, result: Result<(), JournalError>) {
        self.in_flight = false;
        match result {
            Ok(()) => {
                self.failure = None;
                let Some(sealed) = self.sealed.front_mut() else {
                    return;
                };
                let until = (sealed.applied + limits::WRITE_BATCH_MAX).min(sealed.records.len());
                self.pending.fetch_sub(until - sealed.applied, Ordering::SeqCst);
                sealed.applied = until;
                if until == sealed.records.len()
                    && let Some(done) = self.sealed.pop_front()
                    && let Some(segment) = done.segment
                {
                    segment.remove();
                }
                if self.sealed.is_empty() {
                    self.reply(&Ok(()));
                    self.due = Instant::now() + limits::ACCOUNTS_APPLY_INTERVAL;
                }
            }
            Err(error) => {
                let failure = Failure::from(&error);
                self.failure = Some(failure.clone());
                self.due = Instant::now() + limits::ACCOUNTS_RETRY;
                self.waiting.append(&mut self.next_waiting);
                self.reply(&Err(failure));
            }
        }
    }

    fn reply(&mut self, result: &Result<(), Failure>) {
        for done in self.waiting.drain(..) {
            done.send(result.clone().map_err(JournalError::from)).ok();
        }
    }
}

impl Sealed {
    fn new(segment: Option<LogSegment>, records: Vec<Record>) -> Self {
        Self {
            segment,
            records: records.into(),
            applied: 0,
        }
    }
}
