//! The archive port: lists of runs, reviews, usage and pruning. Separate from [`super::Journal`], which has
//! what a run needs while it is in progress.

use std::fmt;

use async_trait::async_trait;
use ir::RunId;
use serde::{Deserialize, Serialize};
use tenancy::Tenant;

use super::journal::{JournalError, RunKind, RunOutcome, RunRecord, RunState};

#[async_trait]
pub trait Archive: Send + Sync + fmt::Debug {
    /// Runs that match, newest first.
    async fn list(&self, tenant: &Tenant, filter: &RunFilter) -> Result<Vec<RunSummary>, JournalError>;

    /// Stores a review of a run that waits for one. Only the first review is accepted.
    async fn review(&self, tenant: &Tenant, run: RunId, verdict: &ReviewDecision)
    -> Result<(), JournalError>;

    /// Usage of the attempts of a run.
    async fn attempt_usage(&self, tenant: &Tenant, run: RunId) -> Result<Vec<AttemptUsage>, JournalError>;

    /// Aggregated usage of one tenant or of all.
    async fn usage(
        &self,
        tenant: Option<&Tenant>,
        filter: &UsageFilter,
    ) -> Result<Vec<UsageRow>, JournalError>;

    /// When the newest run was created, from its id.
    async fn newest_run_ms(&self) -> Result<Option<u64>, JournalError>;

    /// Prunes at most `retention.batch` finished runs that are too old or above the maximum size. Unfinished
    /// runs, runs that wait for a review and runs that hold an idempotency key are never pruned.
    async fn prune(&self, retention: &PruneRequest) -> Result<PruneResult, JournalError>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFilter {
    pub state: Option<RunStatus>,
    /// Only runs older than this one: the last one of the previous page.
    pub before: Option<RunId>,
    pub limit: usize,
}

/// States as displayed: a finished run that waits for a review has a separate state.
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
    pub kind: RunKind,
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
            kind: row.kind,
            client: row.client,
            state: row.state,
            created_at_ms: row.created_at_ms,
            finished: row.finished,
            review: row.review,
        }
    }
}

/// Why a run needs a review, and the review if there is one.
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
    /// The edited data, as JSON.
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

/// Usage of one attempt. Unknown is `None`, never zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptUsage {
    /// Counted from 1; 0 is the unreported usage of a killed server.
    pub attempt: u32,
    pub backend: Option<String>,
    pub model: Option<String>,
    /// The outcome: `succeeded`, `failed`, `cancelled`, `hedge_lost`, `unknown`.
    pub outcome: String,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    /// An estimate where the provider reported none; never added to reported usage.
    pub estimated_tokens: Option<u64>,
}

impl AttemptUsage {
    /// Usage that is possible but unknown.
    pub fn unknown() -> Self {
        Self {
            outcome: String::from("unknown"),
            ..Self::default()
        }
    }
}

/// Which runs to aggregate, and how to group them.
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
    /// `None` for relayed calls.
    pub module: Option<String>,
    pub model: Option<String>,
    /// Days since 1970-01-01, in UTC.
    pub day: Option<u64>,
    pub runs: u64,
    pub attempts: u64,
    /// The sum of the known values; `None` if none is known.
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub estimated_tokens: Option<u64>,
    /// Attempts without reported usage.
    pub unknown: u64,
}

pub const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneRequest {
    /// Runs that ended before this time are pruned.
    pub before_ms: u64,
    /// Above this size the oldest runs are pruned.
    pub bytes_max: u64,
    /// Runs created after this time hold their idempotency key.
    pub idempotency_since_ms: u64,
    /// The same while the size is above `bytes_max`.
    pub once_short_since_ms: u64,
    /// Usage records from before this time are pruned.
    pub usage_before_ms: u64,
    pub batch: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneResult {
    pub runs: usize,
    /// Whether there may be more to prune.
    pub more: bool,
}
