//! How a run is read. A first reader and one that comes back make the same call; a run in progress and
//! one that ended years ago look the same. Events come in batches of whatever is ready.

use std::sync::Arc;

use ir::RunId;
use module::Code;
use module::stream::{Checkpoint, Chunk};
use serde_json::{Map, Value, json};

use super::command::Warning;
use super::broadcast::{RunBroadcast, ReaderGuard};
use super::render::{decode, encode};
use crate::error::Error;
use crate::limits;
use crate::port::{JournalEntry, Journal, EventKind, EncodedEvent, RunState};
use tenancy::Tenant;

/// From where to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadFrom {
    Start,
    AfterChunk(ResumePoint),
    /// Behind the frame with this number, and nothing said before it; 0 is the start.
    AfterFrame(u64),
}

/// The last chunk a client has, and the proof if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumePoint {
    pub seq: u64,
    pub checkpoint: Option<Checkpoint>,
    /// A place that was never sent is an error, rather than a reason to send everything again.
    pub strict: bool,
}

/// Which run is read, and from where its events come.
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
    seat: Option<ReaderGuard>,
    /// The offset of the last event that was handed out.
    cursor: u64,
    /// Said before anything from the journal.
    opening: Option<EncodedEvent>,
    /// The journal's own meta chunk is replaced by `opening`.
    skip_meta: bool,
    ended: bool,
}

impl Subscription {
    pub(crate) async fn open(source: RunSource, from: ReadFrom) -> Result<Self, Error> {
        let mut subscription = Self {
            seat: source.live.map(|live| live.add_reader()),
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

    /// The next events, at least one. `None` at the end: behind the last event, or when this server
    /// stops and the next one will go on with the run.
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

    /// Waits for the run's last event.
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
        while let Some(live) = self.seat.as_ref().map(ReaderGuard::live) {
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
        let limit = limits::PAGE_ENTRIES_MAX;
        let page = self
            .journal
            .read(&self.tenant, self.run, self.cursor, limit)
            .await?;
        if !page.is_empty() {
            return Ok(Some(page));
        }
        let row = self.journal.find(&self.tenant, self.run).await?;
        match row.map(|row| row.state) {
            None => Err(Error::UnknownRun(self.run)),
            Some(RunState::Running) => Err(Error::MissingTerminalEvent(self.run)),
            Some(RunState::Done | RunState::Failed) => Ok(None),
        }
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

    /// Goes to the client's place, or back to the start with a warning if it was never there.
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
            meta: opening_meta("the stream goes on"),
            annotations,
        };
        self.opening = Some(encode(&chunk));
        Ok(())
    }
}

/// What can be said before the model has said anything.
pub(crate) fn opening_meta(explain: &str) -> Map<String, Value> {
    let mut meta = Map::new();
    meta.insert(String::from("confidence"), Value::Null);
    meta.insert(String::from("risk"), Value::from("medium"));
    meta.insert(String::from("explain"), Value::from(explain));
    meta
}

/// Whether a client's checkpoint is the one that was sent. Snapshots carry none, so nothing speaks
/// against a client that stands behind one.
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
