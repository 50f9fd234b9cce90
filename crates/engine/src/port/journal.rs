//! The journal: one row for each run and an append-only log of its encoded events. Every client gets the
//! journaled bytes, now and after a crash; framings never encode again.
//!
//! ```text
//!          read                          append at `after`
//!            v                                  v
//!   [1] [2] [3] [4] [5] [6] | (7) (8) (9) |
//!    ^                   ^             ^
//!  first             committed        tail
//! ```
//!
//! - *first* is 1: an event is never removed while its run is kept.
//! - *committed* is the offset of the last event of a write whose [`Commit`] has resolved. It is what reads
//!   return and what [`RunRecord::last_offset`] shows. Events are published only up to here.
//! - *tail* is the offset of the last event that its writer has handed over. The writer names it as `after` in
//!   its next write.
//! - A write whose `after` is not the offset that the journal has reached is *fenced*: another writer (a server
//!   that took the run over) has appended, and nothing of this write is stored. Events of two writers are never
//!   interleaved.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use ir::RunId;

use tenancy::Tenant;

use super::archive::{AttemptUsage, Review};

/// Writes are queued by the call, in the order of the calls; the returned handle resolves when the write is
/// committed or refused. A caller that writes to a run before the handle of its last write has resolved relies
/// on that order; dropping the handle cancels nothing.
#[async_trait]
pub trait Journal: Send + Sync + fmt::Debug {
    /// Adds a running run without events; [`JournalError::DuplicateKey`] if its idempotency key is already
    /// used.
    fn create(&self, tenant: &Tenant, run: &NewRun) -> Commit;

    /// Appends events after offset `after` (0 when there is none), all or nothing.
    fn append(&self, tenant: &Tenant, run: RunId, after: u64, events: &[EncodedEvent]) -> Commit;

    /// Appends the last events and closes the run in one step. A closed run accepts no more events.
    fn finish(
        &self,
        tenant: &Tenant,
        run: RunId,
        after: u64,
        events: &[EncodedEvent],
        end: &RunEnd,
    ) -> Commit;

    /// Opens the account of a relayed call whose output is not journaled. The handle resolves when the start is
    /// recorded, or refused while nothing can be recorded. A killed process leaves an open account as an
    /// unfinished run.
    fn open_account(&self, tenant: &Tenant, call: &NewRun) -> Result<(Account, Commit), JournalError>;

    /// Up to `limit` entries after offset `after`, in order; fewer if they are large, but at least the next.
    async fn read(
        &self,
        tenant: &Tenant,
        run: RunId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<JournalEntry>, JournalError>;

    /// The chunk with this sequence number.
    async fn find_chunk(
        &self,
        tenant: &Tenant,
        run: RunId,
        seq: u64,
    ) -> Result<Option<JournalEntry>, JournalError>;

    async fn find(&self, tenant: &Tenant, run: RunId) -> Result<Option<RunRecord>, JournalError>;

    /// The run that holds an idempotency key, if there is one.
    async fn find_by_idempotency_key(
        &self,
        tenant: &Tenant,
        client: &str,
        once: &IdempotencyClaim,
    ) -> Result<Option<IdempotencyMatch>, JournalError>;

    /// Every run that was left running, oldest first: the input of recovery. A row that cannot be read is moved
    /// away with a warning: one damaged row does not prevent a start.
    async fn unfinished(&self) -> Result<Vec<(Tenant, RunRecord)>, JournalError>;

    /// Counts a recovery of a running run, and returns how many it has had.
    async fn count_recovery(&self, tenant: &Tenant, run: RunId) -> Result<u32, JournalError>;
}

/// The handle of a write.
#[must_use = "a write is not committed before its handle resolves"]
pub struct Commit(BoxFuture<'static, Result<(), JournalError>>);

impl Commit {
    pub fn new(committed: impl Future<Output = Result<(), JournalError>> + Send + 'static) -> Self {
        Self(committed.boxed())
    }

    /// A write that needs no wait.
    pub fn ready(result: Result<(), JournalError>) -> Self {
        Self::new(std::future::ready(result))
    }
}

impl Future for Commit {
    type Output = Result<(), JournalError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(context)
    }
}

impl fmt::Debug for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Commit")
    }
}

/// The open account of a relayed call.
pub struct Account(Box<dyn FnOnce(RunEnd) + Send + Sync>);

impl Account {
    pub fn new(record: impl FnOnce(RunEnd) + Send + Sync + 'static) -> Self {
        Self(Box::new(record))
    }

    /// Records the end without waiting: its place in the queue was reserved when the account was opened. A run
    /// that has ended already or has events is not changed.
    pub fn end(self, end: RunEnd) {
        (self.0)(end);
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Account")
    }
}

/// The kinds of event, by their names in SSE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Meta,
    Chunk,
    Progress,
    Final,
    Error,
    /// Ends a relayed response that a killed server left unfinished. The body is empty: each reader encodes the
    /// error in its own dialect.
    Interrupted,
}

impl EventKind {
    pub const ALL: [Self; 6] = [
        Self::Meta,
        Self::Chunk,
        Self::Progress,
        Self::Final,
        Self::Error,
        Self::Interrupted,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Chunk => "chunk",
            Self::Progress => "progress",
            Self::Final => "final",
            Self::Error => "error",
            Self::Interrupted => "interrupted",
        }
    }

    pub fn find(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Nothing follows an event of this kind.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Final | Self::Error | Self::Interrupted)
    }
}

/// An event as journaled and sent: one line of JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedEvent {
    pub kind: EventKind,
    /// The sequence number of a chunk; other kinds have none.
    pub seq: Option<u64>,
    pub body: Arc<str>,
}

/// An event with its offset in the journal. Offsets count from 1 and are not exposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalEntry {
    pub offset: u64,
    pub event: EncodedEvent,
}

/// What a run executes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunKind {
    /// The module with this name; its events are chunks.
    Module(String),
    /// A relayed call; its events, if it is resumable, are frames of a vendor's dialect.
    Relay,
}

impl RunKind {
    /// The name of the module.
    pub fn module(&self) -> Option<&str> {
        match self {
            Self::Module(name) => Some(name),
            Self::Relay => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRun {
    pub id: RunId,
    pub kind: RunKind,
    /// The command as JSON, for a rerun by recovery.
    pub command: String,
    pub created_at_ms: u64,
    /// Client id.
    pub client: String,
    /// Set if the client sent an idempotency key.
    pub once: Option<IdempotencyClaim>,
}

/// The claim of an idempotency key by a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyClaim {
    pub key: String,
    /// Distinguishes a repeated request from another request with the same key.
    pub fingerprint: String,
    /// A run created before this time no longer holds its key.
    pub since_ms: u64,
}

/// The run that holds an idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdempotencyMatch {
    pub run: RunId,
    /// Whether it was started by the same request.
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
    /// The error code; `None` on success.
    pub code: Option<String>,
    pub at_ms: u64,
}

/// What is written together with the last events, in the same step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    pub finish: RunOutcome,
    /// The reason for a review, if one is required.
    pub review: Option<String>,
    /// Usage of each attempt; never empty.
    pub usage: Vec<AttemptUsage>,
}

impl RunEnd {
    /// A run without attempts gets one record of unknown usage, so that every run has a record.
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
    pub kind: RunKind,
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
    /// The client has used this idempotency key before.
    #[error("this idempotency key was used for run {}", .0.run)]
    DuplicateKey(IdempotencyMatch),
    /// The run is not waiting for a review.
    #[error("run {0} does not wait for a review")]
    NotInReview(RunId),
    /// There is no space for another event.
    #[error("the journal is full")]
    Full,
    /// The run is closed.
    #[error("run {0} has ended")]
    Ended(RunId),
    /// Another writer has appended after the offset of this writer.
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
