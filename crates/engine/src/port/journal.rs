//! The journal: one row for each run and an append-only log of its rendered events. What was appended
//! is what every client gets, now and after a crash; framings never render again.
//!
//! A run has one writer. It says after which offset it appends, and a journal refuses any other place;
//! so a second writer (a server that took the run over) cannot mix its events into the first one's.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use ir::RunId;

use tenancy::Tenant;

use super::archive::{Review, AttemptUsage};

#[async_trait]
pub trait Journal: Send + Sync + fmt::Debug {
    /// Adds a running run without events; [`JournalError::Repeated`] if it was to happen only once and has.
    async fn create(&self, tenant: &Tenant, run: &NewRun) -> Result<(), JournalError>;

    /// Appends events behind the one at offset `after` (0 when there is none), all or nothing.
    async fn append(
        &self,
        tenant: &Tenant,
        run: RunId,
        after: u64,
        events: &[EncodedEvent],
    ) -> Result<(), JournalError>;

    /// Appends the last events and closes the run in one step. A closed run takes nothing more.
    async fn finish(
        &self,
        tenant: &Tenant,
        run: RunId,
        after: u64,
        events: &[EncodedEvent],
        end: &RunEnd,
    ) -> Result<(), JournalError>;

    /// Books how a run begins, or how one ends that has no events but its last, without waiting: what was booked survives a killed process,
    /// is seen by whoever looks for the run next, and counts once, however often it is booked. Entering is refused
    /// while nothing can be written.
    fn record(&self, tenant: &Tenant, booking: LifecycleRecord) -> Result<(), JournalError>;

    /// Books together with others: it is booked once [`Journal::commit`] has said so, and what many have noted takes one
    /// write.
    fn buffer(&self, tenant: &Tenant, booking: LifecycleRecord) -> Result<(), JournalError> {
        self.record(tenant, booking)
    }

    /// Returns when all that was noted of this run is booked. What could not be is told once, and is as if it had never
    /// been noted.
    fn flush(&self, _run: RunId) -> Result<(), JournalError> {
        Ok(())
    }

    /// Up to `limit` entries behind offset `after`, in order; fewer where they are large, but one if there is one.
    async fn read(
        &self,
        tenant: &Tenant,
        run: RunId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<JournalEntry>, JournalError>;

    /// The chunk with this number.
    async fn find_chunk(&self, tenant: &Tenant, run: RunId, seq: u64) -> Result<Option<JournalEntry>, JournalError>;

    async fn find(&self, tenant: &Tenant, run: RunId) -> Result<Option<RunRecord>, JournalError>;

    /// The run that holds a client's name for a request, if there is one.
    async fn find_by_idempotency_key(&self, tenant: &Tenant, client: &str, once: &IdempotencyClaim) -> Result<Option<IdempotencyMatch>, JournalError>;

    /// Every run that was left running, oldest first: what a starting server has to pick up.
    async fn unfinished(&self) -> Result<Vec<(Tenant, RunRecord)>, JournalError>;
}

/// One entry in the accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LifecycleRecord {
    /// It begins. Nobody gave it a name of its own. From here on it takes events as one that was created does.
    Started(NewRun),
    /// It has ended. One that has ended before, or has events already, stays as it is.
    Ended {
        run: RunId,
        last: Option<EncodedEvent>,
        end: RunEnd,
    },
}

impl LifecycleRecord {
    pub fn run(&self) -> RunId {
        match self {
            Self::Started(new) => new.id,
            Self::Ended { run, .. } => *run,
        }
    }
}

/// The kinds of event, by the names they have in SSE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Meta,
    Chunk,
    Progress,
    Final,
    Error,
}

impl EventKind {
    pub const ALL: [Self; 5] = [Self::Meta, Self::Chunk, Self::Progress, Self::Final, Self::Error];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Chunk => "chunk",
            Self::Progress => "progress",
            Self::Final => "final",
            Self::Error => "error",
        }
    }

    pub fn find(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Nothing follows an event of this kind.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Final | Self::Error)
    }
}

/// An event as it goes over the wire: one line of JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedEvent {
    pub kind: EventKind,
    /// The number of a chunk; other kinds have none.
    pub seq: Option<u64>,
    pub body: Arc<str>,
}

/// An event at its place in the journal. Offsets count from 1 and are nobody's business outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalEntry {
    pub offset: u64,
    pub event: EncodedEvent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRun {
    pub id: RunId,
    pub module: String,
    /// The command as JSON, so that a restarted server can run it again.
    pub command: String,
    pub created_at_ms: u64,
    /// Who asked for it.
    pub client: String,
    /// Set where the client wants this to happen only once.
    pub once: Option<IdempotencyClaim>,
}

/// A name that a client gave a request, so that saying it again does nothing again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyClaim {
    pub key: String,
    /// Tells whether it is the same request.
    pub fingerprint: String,
    /// A run that was made before this moment no longer holds its name.
    pub since_ms: u64,
}

/// Who holds a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdempotencyMatch {
    pub run: RunId,
    /// It was asked for by the same request.
    pub same_request: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    Running,
    Done,
    Failed,
}

impl RunState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    pub fn find(text: &str) -> Option<Self> {
        [Self::Running, Self::Done, Self::Failed]
            .into_iter()
            .find(|state| state.as_str() == text)
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOutcome {
    /// The error's code; `None` for a good end.
    pub code: Option<String>,
    pub at_ms: u64,
}

/// What is written beside the last events, in the same step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    pub finish: RunOutcome,
    /// Why a person has to look at it, if one has to.
    pub review: Option<String>,
    /// What each attempt used; never empty.
    pub usage: Vec<AttemptUsage>,
}

impl RunEnd {
    /// A run without any attempt gets one record that says so: none goes unaccounted.
    pub fn new(code: Option<String>, at_ms: u64, mut usage: Vec<AttemptUsage>) -> Self {
        if usage.is_empty() {
            usage.push(AttemptUsage::unknown());
        }
        Self {
            finish: RunOutcome { code, at_ms },
            review: None,
            usage,
        }
    }
}

impl RunOutcome {
    pub fn state(&self) -> RunState {
        if self.code.is_none() {
            RunState::Done
        } else {
            RunState::Failed
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRecord {
    pub id: RunId,
    pub module: String,
    pub client: String,
    pub command: String,
    pub state: RunState,
    pub created_at_ms: u64,
    pub finished: Option<RunOutcome>,
    pub review: Option<Review>,
    /// The offset of the last event, 0 when there is none.
    pub last_offset: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// No such run for this tenant.
    #[error("no run {0}")]
    Unknown(RunId),
    #[error("run {0} exists already")]
    Exists(RunId),
    /// The same client gave the same name to a run before.
    #[error("run {} was asked for under this name", .0.run)]
    DuplicateKey(IdempotencyMatch),
    /// The run does not wait for anyone's word.
    #[error("run {0} does not wait for a review")]
    NotInReview(RunId),
    /// There is no room for another event.
    #[error("the journal is full")]
    Full,
    /// The run is closed.
    #[error("run {0} has ended")]
    Ended(RunId),
    /// Someone else has appended behind the offset this writer knows.
    #[error("run {0} has another writer")]
    Fenced(RunId),
    #[error("the journal failed: {0}")]
    Storage(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl JournalError {
    pub fn from_backend(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Storage(error.into())
    }
}
