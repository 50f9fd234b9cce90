//! Relayed calls: requests without a module, from clients of a vendor API or of the canonical API. They use
//! the same fleet, retry loop and journal as runs; the response is the back-end's, not an envelope. `machine`
//! decides, without IO; `driver` executes; `start` journals the start. No dialect is known here.

mod continuation;
mod driver;
mod machine;
mod patch_warnings;
mod response;
mod resumable;
mod start;
#[cfg(test)]
mod tests;
mod tool_emulation;
mod unary;

use std::sync::Arc;

use ir::{Decimal, Error, Event, Request, RunId, TraceContext};

pub use self::machine::{Input, Output, RelayConfig, RelayMachine};
pub use self::response::RelayResponse;
pub use self::resumable::{FrameEncoder, ResumableResponse};
pub(crate) use self::start::Relay;
use crate::port::{Backend, RawChunk, RawRequest, UnaryResponse};

/// A request to relay.
#[derive(Clone, Debug)]
pub struct RelayRequest {
    pub request: Arc<Request>,
    /// The same request as raw bytes in the caller's dialect. If absent, every response is a stream of
    /// events.
    pub verbatim: Option<Arc<RawRequest>>,
    /// The caller's trace context.
    pub trace: Option<TraceContext>,
    /// The run id, if the caller has already chosen one; it must be unused.
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

/// The next part of a response. A response is raw or events from its first part on; it changes at most once,
/// from raw to events, when another back-end continues the text of the first.
#[derive(Clone, Debug, PartialEq)]
pub enum RelayPart {
    Raw(RawChunk),
    Event(Event),
    /// Everything emitted so far, sent before the first event after raw bytes: the encoder encodes and
    /// discards it, so that its state is right for the events that follow.
    Replay(Vec<Event>),
}

/// No back-end could answer, and nothing was emitted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{error}")]
pub struct RelayFailure {
    pub run: RunId,
    pub attempts: u32,
    pub error: Error,
}

/// The complete response of a unary operation.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayedUnary {
    pub run: RunId,
    pub backend: Backend,
    /// The number of the back-end's key that was used.
    pub key: u32,
    pub attempts: u32,
    /// From the request to the complete response.
    pub latency_ms: u64,
    /// The cost, if the back-end reports it or its price is known.
    pub cost_usd: Option<Decimal>,
    pub answer: UnaryResponse,
}

impl RelayedUnary {
    /// The instance that answered: the back-end, and the number of its key.
    pub fn instance(&self) -> String {
        format!("{}-{}", self.backend.name, self.key.saturating_add(1))
    }
}
