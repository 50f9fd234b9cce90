//! Reading a run. A first reader and a resuming reader make the same call, and a run in progress reads like
//! one that has ended. Events are delivered in batches of what is available.

use std::sync::Arc;

use ir::RunId;
use module::Code;
use module::stream::{Checkpoint, Chunk};
use serde_json::{Map, Value, json};

use super::broadcast::{ReaderGuard, RunBroadcast};
use super::command::Warning;
use super::render::{decode, encode};
use crate::error::Error;
use crate::limits;
use crate::port::{EncodedEvent, EventKind, Journal, JournalEntry, JournalError, RunState};
use tenancy::Tenant;

/// Where reading starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadFrom {
    Start,
    AfterChunk(ResumePoint),
    /// After the frame with this number, without an opening event; 0 is the start.
    AfterFrame(u64),
}

/// The last chunk that a client has, and its checkpoint if the client sent one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumePoint {
    pub seq: u64,
    pub checkpoint: Option<Checkpoint>,
    /// A resume point that was never sent is an error, instead of a restart from the first event.
    pub strict: bool,
}

/// The run to read, and where its events are read from.
#[derive(Debug)]
pub(crate) struct RunSource {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) tenant: Tenant,
    pub(crate) run: RunId,
    pub(crate) live: Option<Arc<RunBroadcast>>,
}

#[derive(Debug)]
pub struct Subscription {
    journal: Arc<dyn Journal>,
    tenant: Tenant,
    run: RunId,
    reader: Option<ReaderGuard>,
    /// The offset of the last event that was delivered.
    cursor: u64,
    /// Delivered before any event of the journal.
    opening: Option<EncodedEvent>,
    /// The journaled meta chunk is replaced by `opening`.
    skip_meta: bool,
    ended: bool,
}

impl Subscription {
    pub(crate) async fn open(source: RunSource, from: ReadFrom) -> Result<Self, Error> {
        let mut subscription = Self {
            reader: source.live.map(|live| live.add_reader()),
            journal: source.journal,
            tenant: source.tenant,
            run: source.run,
            cursor: 0,
            opening: None,
            skip_meta: false,
            ended: false,
        };
        match from {
            ReadFrom::Start => {}
            ReadFrom::AfterChunk(place) => subscription.seek(&place).await?,
            ReadFrom::AfterFrame(0) => {}
            ReadFrom::AfterFrame(seq) => {
                let run = subscription.run;
                let entry = subscription
                    .journal
                    .find_chunk(&subscription.tenant, run, seq)
                    .await?;
                subscription.cursor = entry.ok_or(Error::Checkpoint(run))?.offset;
            }
        }
        Ok(subscription)
    }

    pub fn run(&self) -> RunId {
        self.run
    }

    /// The next events, at least one. `None` after the terminal event, or when this server stops and leaves
    /// the run for recovery.
    pub async fn next(&mut self) -> Result<Option<Vec<EncodedEvent>>, Error> {
        if let Some(opening) = self.opening.take() {
            return Ok(Some(vec![opening]));
        }
        while !self.ended {
            let entries = self.ready().await?;
            let Some(entries) = entries else {
                return Ok(None);
            };
            let events = self.deliver(entries);
            if !events.is_empty() {
                return Ok(Some(events));
            }
        }
        Ok(None)
    }

    /// Waits for the terminal event.
    pub async fn terminal_event(mut self) -> Result<EncodedEvent, Error> {
        let run = self.run;
        while let Some(mut events) = self.next().await? {
            match events.pop() {
                Some(last) if last.kind.is_terminal() => return Ok(last),
                _ => {}
            }
        }
        Err(Error::MissingTerminalEvent(run))
    }

    async fn ready(&self) -> Result<Option<Vec<JournalEntry>>, Error> {
        while let Some(live) = self.reader.as_ref().map(ReaderGuard::live) {
            let (news, open) = (live.changed(), live.is_open());
            match live.events_after(self.cursor) {
                None => break,
                Some(entries) if !entries.is_empty() => return Ok(Some(entries)),
                Some(_) if !open => return Ok(None),
                Some(_) => news.await,
            }
        }
        self.read_journal().await
    }

    async fn read_journal(&self) -> Result<Option<Vec<JournalEntry>>, Error> {
        let page = self.page().await?;
        if !page.is_empty() {
            return Ok(Some(page));
        }
        let row = self.journal.find(&self.tenant, self.run).await?;
        let row = row.ok_or(Error::UnknownRun(self.run))?;
        // Another process may have written since the page was read.
        if row.last_offset > self.cursor {
            return Ok(Some(self.page().await?));
        }
        match row.state {
            RunState::Running if self.reader.is_none() => Err(Error::NotOwned(self.run)),
            RunState::Running => Err(Error::MissingTerminalEvent(self.run)),
            RunState::Done | RunState::Failed => Ok(None),
        }
    }

    async fn page(&self) -> Result<Vec<JournalEntry>, JournalError> {
        let limit = limits::PAGE_ENTRIES_MAX;
        self.journal
            .read(&self.tenant, self.run, self.cursor, limit)
            .await
    }

    fn deliver(&mut self, entries: Vec<JournalEntry>) -> Vec<EncodedEvent> {
        let mut events = Vec::with_capacity(entries.len());
        for JournalEntry { offset, event } in entries {
            self.cursor = offset;
            self.ended |= event.kind.is_terminal();
            if !(self.skip_meta && event.kind == EventKind::Meta) {
                events.push(event);
            }
        }
        events
    }

    /// Moves to the resume point, or to the start with a warning if the resume point was never sent.
    async fn seek(&mut self, place: &ResumePoint) -> Result<(), Error> {
        self.skip_meta = true;
        let found = match place.seq {
            0 => Some(0),
            seq => {
                let entry = self.journal.find_chunk(&self.tenant, self.run, seq).await?;
                entry
                    .filter(|entry| checkpoint_matches(&entry.event, place.checkpoint.as_ref()))
                    .map(|entry| entry.offset)
            }
        };
        let mut annotations = Map::new();
        let resume_from_seq = match found {
            Some(offset) => {
                self.cursor = offset;
                place.seq + 1
            }
            None if place.strict => return Err(Error::Checkpoint(self.run)),
            None => {
                let message = "the checkpoint does not match what was sent; the stream starts over";
                let warning = Warning::new(Code::W4014, message);
                annotations.insert(String::from("_warnings"), json!([warning.to_value()]));
                1
            }
        };
        let chunk = Chunk::Meta {
            session_id: self.run.to_string(),
            resume_from_seq: Some(resume_from_seq),
            meta: opening_meta("stream resumed"),
            annotations,
        };
        self.opening = Some(encode(&chunk));
        Ok(())
    }
}

/// The meta of the first chunk, before any output of the model.
pub(crate) fn opening_meta(explain: &str) -> Map<String, Value> {
    let mut meta = Map::new();
    meta.insert(String::from("confidence"), Value::Null);
    meta.insert(String::from("risk"), Value::from("medium"));
    meta.insert(String::from("explain"), Value::from(explain));
    meta
}

/// Whether a client's checkpoint is the one that was sent. Snapshots have no checkpoint, so every claim after
/// a snapshot is accepted.
fn checkpoint_matches(event: &EncodedEvent, claimed: Option<&Checkpoint>) -> bool {
    let Some(claimed) = claimed else { return true };
    match decode(event) {
        Some(Chunk::Delta {
            checkpoint: Some(sent),
            ..
        }) => sent == *claimed,
        _ => true,
    }
}
