//! The journal as those see it who look back: lists of runs, a person's word on one, what was used, and
//! what may be thrown away. Kept apart from [`super::Journal`], which is what a run needs while it runs.

use std::fmt;

use async_trait::async_trait;
use ir::RunId;
use serde::{Deserialize, Serialize};
use tenancy::Tenant;

use super::journal::{RunOutcome, JournalError, RunRecord, RunState};

#[async_trait]
pub trait Archive: Send + Sync + fmt::Debug {
    /// Runs that fit, newest first.
    async fn list(&self, tenant: &Tenant, filter: &RunFilter) -> Result<Vec<RunSummary>, JournalError>;

    /// A person's word on a run that waits for it. The first word stands.
    async fn review(&self, tenant: &Tenant, run: RunId, verdict: &ReviewDecision) -> Result<(), JournalError>;

    /// What the attempts of a run used.
    async fn attempt_usage(&self, tenant: &Tenant, run: RunId) -> Result<Vec<AttemptUsage>, JournalError>;

    /// What was used, added up; of one tenant or of all.
    async fn usage(
        &self,
        tenant: Option<&Tenant>,
        filter: &UsageFilter,
    ) -> Result<Vec<UsageRow>, JournalError>;

    /// Throws away at most `retention.batch` finished runs that are too old or too many. One that runs,
    /// waits for a person or still holds its client's name for it is never among them.
    async fn prune(&self, retention: &PruneRequest) -> Result<PruneResult, JournalError>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFilter {
    pub state: Option<RunStatus>,
    /// Only runs older than this one: where the page before ended.
    pub before: Option<RunId>,
    pub limit: usize,
}

/// The states that people see: a finished run that waits for a person is in a state of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatus {
    Running,
    Done,
    Failed,
    NeedsReview,
}

impl RunStatus {
    pub const ALL: [Self; 4] = [Self::Running, Self::Done, Self::Failed, Self::NeedsReview];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::NeedsReview => "needs_review",
        }
    }

    pub fn find(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    pub fn of(state: RunState, review: Option<&Review>) -> Self {
        match (state, review) {
            (_, Some(review)) if review.verdict.is_none() => Self::NeedsReview,
            (RunState::Running, _) => Self::Running,
            (RunState::Done, _) => Self::Done,
            (RunState::Failed, _) => Self::Failed,
        }
    }
}

/// A run without its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    pub id: RunId,
    pub module: String,
    pub client: String,
    pub state: RunState,
    pub created_at_ms: u64,
    pub finished: Option<RunOutcome>,
    pub review: Option<Review>,
}

impl RunSummary {
    pub fn shown(&self) -> RunStatus {
        RunStatus::of(self.state, self.review.as_ref())
    }
}

impl From<RunRecord> for RunSummary {
    fn from(row: RunRecord) -> Self {
        Self {
            id: row.id,
            module: row.module,
            client: row.client,
            state: row.state,
            created_at_ms: row.created_at_ms,
            finished: row.finished,
            review: row.review,
        }
    }
}

/// Why a person has to look at a run, and what that person said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Review {
    pub reason: String,
    pub verdict: Option<ReviewDecision>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewDecision {
    pub decision: ReviewOutcome,
    pub by: String,
    pub comment: Option<String>,
    /// What an edited answer says now, as JSON.
    pub data: Option<String>,
    pub at_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewOutcome {
    Approved,
    Rejected,
    Edited,
}

impl ReviewOutcome {
    pub const ALL: [Self; 3] = [Self::Approved, Self::Rejected, Self::Edited];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Edited => "edited",
        }
    }

    pub fn find(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|decision| decision.as_str() == text)
    }
}

/// What one attempt used. Unknown is `None`, never zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptUsage {
    /// Counted from 1; 0 stands for what a killed server did and could not report.
    pub attempt: u32,
    pub backend: Option<String>,
    pub model: Option<String>,
    /// How it went: `won`, `failed`, `cancelled`, `hedge_lost`, `unknown`.
    pub outcome: String,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    /// Our guess where the provider did not say; never added to what it did say.
    pub estimated_tokens: Option<u64>,
}

impl AttemptUsage {
    /// Something may have been used, and nobody can say what.
    pub fn unknown() -> Self {
        Self {
            outcome: String::from("unknown"),
            ..Self::default()
        }
    }
}

/// Which runs, and how they are put together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageFilter {
    pub since_ms: Option<u64>,
    pub until_ms: Option<u64>,
    pub by_client: bool,
    pub by_module: bool,
    pub by_model: bool,
    pub by_day: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UsageRow {
    pub client: Option<String>,
    pub module: Option<String>,
    pub model: Option<String>,
    /// Days since 1970-01-01, in UTC.
    pub day: Option<u64>,
    pub runs: u64,
    pub attempts: u64,
    /// The sum of what is known; `None` where nothing is.
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub estimated_tokens: Option<u64>,
    /// Attempts whose use nobody reported.
    pub unknown: u64,
}

pub const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneRequest {
    /// Runs that ended before this moment go.
    pub before_ms: u64,
    /// When more is held than this, the oldest go.
    pub bytes_max: u64,
    /// Runs that were made after this moment hold their client's name for them.
    pub idempotency_since_ms: u64,
    /// The same where more is held than `bytes_max`.
    pub once_short_since_ms: u64,
    /// Records of use from before this moment go.
    pub usage_before_ms: u64,
    pub batch: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneResult {
    pub runs: usize,
    /// Whether there may be more to throw away.
    pub more: bool,
}
