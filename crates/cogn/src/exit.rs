//! What the shell sees.

use std::process::ExitCode;

/// The three ways in which a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is well: 0.
    Good,
    /// The contract says no: error diagnostics, `ok: false`, failed tests: 1.
    No,
    /// The command could not do its work: usage, configuration, IO: 2.
    Trouble,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Good => Self::from(0),
            Exit::No => Self::from(1),
            Exit::Trouble => Self::from(2),
        }
    }
}
