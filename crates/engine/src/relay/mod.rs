//! Requests that come without a module: from vendors' clients, or from anyone who speaks the canonical
//! envelope. They go the same way through the fleet as runs do, under the same rules, and into the same
//! accounts; what comes back is what the back-end said, not an envelope. `machine` decides, purely;
//! `hands` carries out; `book` keeps the accounts. No dialect is known here.

mod start;
mod lifecycle;
mod driver;
mod machine;
mod response;
mod resumable;
mod continuation;
#[cfg(test)]
mod tests;
mod tool_emulation;
mod patch_warnings;
mod unary;

use std::sync::Arc;

use ir::{Decimal, Error, Event, Request, RunId, TraceContext};

pub use self::machine::{Input, RelayMachine, Output, RelayConfig};
pub use self::response::RelayResponse;
pub use self::resumable::{FrameEncoder, ResumableResponse};
use crate::port::{UnaryResponse, Backend, RawChunk, RawRequest};

/// A request that is to be passed on.
#[derive(Clone, Debug)]
pub struct RelayRequest {
    pub request: Arc<Request>,
    /// The same in the caller's own words. Without them every answer comes as events.
    pub verbatim: Option<Arc<RawRequest>>,
    /// The caller's place in a trace.
    pub trace: Option<TraceContext>,
    /// What the run is to be called, where somebody has said it already; nobody else may have said the same.
    pub run: Option<RunId>,
}

impl RelayRequest {
    pub fn new(request: impl Into<Arc<Request>>) -> Self {
        Self {
            request: request.into(),
            verbatim: None,
            trace: None,
            run: None,
        }
    }
}

/// What the caller is to be given next. A call is verbatim or events from its first part on; it changes at
/// most once, from verbatim to events, where another back-end goes on behind the words of the first.
#[derive(Clone, Debug, PartialEq)]
pub enum RelayPart {
    Raw(RawChunk),
    Event(Event),
    /// What the caller has so far, now that events follow: to be rendered and thrown away, so that what
    /// follows is rendered as the rest of it.
    Replay(Vec<Event>),
}

/// Nobody could answer, and nothing was shown.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{error}")]
pub struct RelayFailure {
    pub run: RunId,
    pub attempts: u32,
    pub error: Error,
}

/// An answer that came whole.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayedUnary {
    pub run: RunId,
    pub backend: Backend,
    /// Which of the back-end's keys was used.
    pub key: u32,
    pub attempts: u32,
    /// From the question to the answer.
    pub latency_ms: u64,
    /// What it cost, where the back-end or its price tells.
    pub cost_usd: Option<Decimal>,
    pub answer: UnaryResponse,
}

impl RelayedUnary {
    /// Who exactly answered: the back-end, and the number of its key.
    pub fn instance(&self) -> String {
        format!("{}-{}", self.backend.name, self.key.saturating_add(1))
    }
}
