//! Exit codes.

use std::process::ExitCode;

/// The result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success: 0.
    Success,
    /// The contract is not met: error diagnostics, `ok: false`, failed tests: 1.
    Failure,
    /// The command could not be executed: usage, configuration or IO error: 2.
    Error,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Success => Self::from(0),
            Exit::Failure => Self::from(1),
            Exit::Error => Self::from(2),
        }
    }
}
