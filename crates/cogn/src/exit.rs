//! What the shell sees.

use std::process::ExitCode;

/// The three ways in which a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is well: 0.
    Success,
    /// The contract says no: error diagnostics, `ok: false`, failed tests: 1.
    Failure,
    /// The command could not do its work: usage, configuration, IO: 2.
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
