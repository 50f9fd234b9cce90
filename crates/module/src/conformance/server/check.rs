//! One check: its rule, the module it requires, and its next step after each response.

use super::request::ServerRequest;
use super::response::ServerResponse;
use super::test_module::TestModule;

/// The kind of module that a check requires on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// A module that returns a complete answer or a stream, as requested.
    Both,
    /// A module that never streams.
    Sync,
    /// A module that streams unless a complete answer is requested.
    Streaming,
    /// A module that accepts images.
    Image,
}

impl Capability {
    pub const ALL: [Self; 4] = [Self::Both, Self::Sync, Self::Streaming, Self::Image];

    pub fn description(self) -> &'static str {
        match self {
            Self::Both => "a module with `response.mode: both`",
            Self::Sync => "a module with `response.mode: sync`",
            Self::Streaming => "a module with `response.mode: streaming`",
            Self::Image => "a module that accepts images",
        }
    }
}

/// Why a check ended without passing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckEnd {
    Failed(String),
    /// Not decidable on this server: nothing is proven.
    Skipped(String),
    /// Optional in the specification, and the server declares that it does not support it.
    NotApplicable(String),
}

/// The next request; none when the check has passed.
pub type Next = Result<Option<ServerRequest>, CheckEnd>;

pub struct Check {
    /// `area.what`.
    pub name: &'static str,
    /// The requirement, in one sentence.
    pub rule: &'static str,
    /// Required by the specification; otherwise recommended, or the means are left open.
    pub must: bool,
    pub level: u8,
    pub need: Capability,
    pub(super) next: fn(&TestModule, &[ServerResponse]) -> Next,
}

impl Check {
    /// A check that the specification requires, at the highest level.
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

    /// A check of a recommendation, or of a requirement whose means are left open.
    pub(super) fn recommended(self) -> Self {
        Self { must: false, ..self }
    }

    pub(super) fn at_level(self, level: u8) -> Self {
        Self { level, ..self }
    }

    /// The next request, given the responses so far.
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

/// Fails with the reason unless the condition holds.
pub(super) fn ensure(holds: bool, reason: impl FnOnce() -> String) -> Result<(), CheckEnd> {
    match holds {
        true => Ok(()),
        false => fail(reason()),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "used as the return value of checks")]
pub(super) fn ask(ask: ServerRequest) -> Next {
    Ok(Some(ask))
}

pub(super) const PASSED: Next = Ok(None);
