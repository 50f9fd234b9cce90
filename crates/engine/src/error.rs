//! Errors of engine calls. A failed run is not an error here: its stream ends with an error event.

use ir::RunId;
use module::Code;
use module::envelope::ErrorBody;

use crate::limits;
use crate::port::{IdempotencyMatch, JournalError};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The module rejected the input; nothing was started.
    #[error("{}", .0.message)]
    Input(Box<ErrorBody>),
    #[error("no run {0}")]
    UnknownRun(RunId),
    /// The maximum number of runs is in progress.
    #[error("{0} runs are in progress")]
    TooManyRuns(usize),
    /// The client's resume point was never sent.
    #[error("the checkpoint does not match run {0}")]
    Checkpoint(RunId),
    /// The run ended without a terminal event; only a failing journal causes this.
    #[error("run {0} ended without a terminal event")]
    MissingTerminalEvent(RunId),
    /// The run is in progress on another server, or it is a relayed call, which only its own caller reads and
    /// cancels.
    #[error("run {0} is in progress, but not owned by this server")]
    NotOwned(RunId),
    /// The client has used this idempotency key before, for the same or for another request.
    #[error("this idempotency key was used for run {}", .0.run)]
    DuplicateRequest(IdempotencyMatch),
    /// The run is not waiting for a review.
    #[error("run {0} does not wait for a review")]
    NotInReview(RunId),
    #[error(transparent)]
    Journal(JournalError),
}

impl Error {
    /// The error body sent to a client. Errors of the journal's storage are not exposed.
    pub fn into_body(self) -> ErrorBody {
        match self {
            Self::Input(body) => *body,
            Self::UnknownRun(run) => ErrorBody::new(Code::E4009, format!("no run {run}")),
            Self::TooManyRuns(runs) => ErrorBody::new(Code::E4002, format!("{runs} runs are in progress")),
            Self::Checkpoint(run) => {
                ErrorBody::new(Code::E4014, format!("the checkpoint does not match run {run}"))
            }
            Self::MissingTerminalEvent(run) => {
                ErrorBody::new(Code::E2010, format!("run {run} ended without a terminal event"))
            }
            Self::NotOwned(run) => {
                let message = format!("run {run} is in progress, but not owned by this server");
                let mut body = ErrorBody::new(Code::E2010, message)
                    .suggest("retry at the server that executes the run, or when the run has ended");
                body.recoverable = true;
                body
            }
            Self::DuplicateRequest(IdempotencyMatch { run, .. }) => ErrorBody::new(
                Code::E1001,
                format!("this idempotency key was used for another request, run {run}"),
            ),
            Self::NotInReview(run) => {
                ErrorBody::new(Code::E1001, format!("run {run} does not wait for a review"))
            }
            Self::Journal(JournalError::Full) => journal_full(),
            Self::Journal(_) => ErrorBody::new(Code::E4000, "the journal could not be used"),
        }
    }
}

/// There is space again when old runs have been pruned.
pub(crate) fn journal_full() -> ErrorBody {
    ErrorBody::new(Code::E4000, "the journal is full")
        .suggest("retry later; the operator can keep fewer runs or allow more space")
        .detail("reason", "journal_full")
        .detail("retry_after_ms", limits::JOURNAL_FULL_RETRY_MS)
}

impl From<JournalError> for Error {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Unknown(run) => Self::UnknownRun(run),
            JournalError::DuplicateKey(named) => Self::DuplicateRequest(named),
            JournalError::NotInReview(run) => Self::NotInReview(run),
            error => Self::Journal(error),
        }
    }
}
