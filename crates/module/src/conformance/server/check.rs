//! One check: what it is about, what it needs, and how it goes on after each answer.

use super::response::ServerResponse;
use super::request::ServerRequest;
use super::test_module::TestModule;

/// What a check needs on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// A module that answers whole or as a stream, as it is asked.
    Both,
    /// A module that never streams.
    Sync,
    /// A module that streams unless it is told otherwise.
    Streaming,
    /// A module that takes pictures.
    Image,
}

impl Capability {
    pub const ALL: [Self; 4] = [Self::Both, Self::Sync, Self::Streaming, Self::Image];

    pub fn description(self) -> &'static str {
        match self {
            Self::Both => "a module with `response.mode: both`",
            Self::Sync => "a module with `response.mode: sync`",
            Self::Streaming => "a module with `response.mode: streaming`",
            Self::Image => "a module that takes pictures",
        }
    }
}

/// Why a check goes no further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckEnd {
    Failed(String),
    /// It could not be told here: nothing is proven.
    Skipped(String),
    /// The specification lets a server do without, and this one says that it does.
    NotApplicable(String),
}

/// The next request; none when the check has passed.
pub type Next = Result<Option<ServerRequest>, CheckEnd>;

pub struct Check {
    /// `area.what`.
    pub name: &'static str,
    /// What a server has to do, in a sentence.
    pub rule: &'static str,
    /// Whether the specification demands it; otherwise it recommends it, or leaves the means open.
    pub must: bool,
    pub level: u8,
    pub need: Capability,
    pub(super) next: fn(&TestModule, &[ServerResponse]) -> Next,
}

impl Check {
    /// One that the specification demands at the level that all of it is asked of.
    pub(super) fn new(
        name: &'static str,
        rule: &'static str,
        need: Capability,
        next: fn(&TestModule, &[ServerResponse]) -> Next,
    ) -> Self {
        Self {
            name,
            rule,
            must: true,
            level: 4,
            need,
            next,
        }
    }

    /// One that it only recommends, or leaves the means to open.
    pub(super) fn recommended(self) -> Self {
        Self { must: false, ..self }
    }

    pub(super) fn at_level(self, level: u8) -> Self {
        Self { level, ..self }
    }

    /// What follows the answers so far.
    pub fn next(&self, subject: &TestModule, answers: &[ServerResponse]) -> Next {
        (self.next)(subject, answers)
    }
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Check")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

pub(super) fn fail<T>(reason: impl Into<String>) -> Result<T, CheckEnd> {
    Err(CheckEnd::Failed(reason.into()))
}

pub(super) fn skip<T>(reason: impl Into<String>) -> Result<T, CheckEnd> {
    Err(CheckEnd::Skipped(reason.into()))
}

pub(super) fn not_applicable<T>(reason: impl Into<String>) -> Result<T, CheckEnd> {
    Err(CheckEnd::NotApplicable(reason.into()))
}

/// Fails with the reason unless it holds.
pub(super) fn ensure(holds: bool, reason: impl FnOnce() -> String) -> Result<(), CheckEnd> {
    match holds {
        true => Ok(()),
        false => fail(reason()),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "it stands where checks return")]
pub(super) fn ask(ask: ServerRequest) -> Next {
    Ok(Some(ask))
}

pub(super) const PASSED: Next = Ok(None);
