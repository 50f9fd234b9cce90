//! Why the engine could not do what was asked. A run that fails is not an error here: its stream says
//! so itself.

use ir::RunId;
use module::Code;
use module::envelope::ErrorBody;

use crate::limits;
use crate::port::{JournalError, IdempotencyMatch};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The input does not fit the module; nothing was started.
    #[error("{}", .0.message)]
    Input(Box<ErrorBody>),
    #[error("no run {0}")]
    UnknownRun(RunId),
    /// As many runs are in progress as may be.
    #[error("{0} runs are in progress")]
    TooManyRuns(usize),
    /// The client's place in the stream is not one that was sent.
    #[error("the checkpoint does not match run {0}")]
    Checkpoint(RunId),
    /// The run ended without saying how; only a failing journal brings this about.
    #[error("run {0} was lost")]
    MissingTerminalEvent(RunId),
    /// The client has asked for this before, or for something else under the same name.
    #[error("run {} was asked for under this name", .0.run)]
    DuplicateRequest(IdempotencyMatch),
    /// No person's word is awaited there.
    #[error("run {0} does not wait for a review")]
    NotInReview(RunId),
    #[error(transparent)]
    Journal(JournalError),
}

impl Error {
    /// The error as it is told to a client. What the journal's storage says stays inside.
    pub fn into_body(self) -> ErrorBody {
        match self {
            Self::Input(body) => *body,
            Self::UnknownRun(run) => ErrorBody::new(Code::E4009, format!("no run {run}")),
            Self::TooManyRuns(runs) => ErrorBody::new(Code::E4002, format!("{runs} runs are in progress")),
            Self::Checkpoint(run) => {
                ErrorBody::new(Code::E4014, format!("the checkpoint does not match run {run}"))
            }
            Self::MissingTerminalEvent(run) => ErrorBody::new(Code::E2010, format!("run {run} was lost")),
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

/// There is room again when old runs have been thrown away.
pub(crate) fn journal_full() -> ErrorBody {
    ErrorBody::new(Code::E4000, "the journal is full")
        .suggest("try again later; whoever runs the server can keep fewer runs or allow more space")
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
