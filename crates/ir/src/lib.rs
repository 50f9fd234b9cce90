//! The vocabulary that every other crate speaks: canonical requests and responses, the events of a
//! stream and their fold, media, usage, errors, ids. Plain data; no IO, no clock, no randomness.
//!
//! Whatever a foreign document carries and this vocabulary has no word for is kept in an [`Ext`],
//! scoped to the dialect it came from, and goes back to that dialect unchanged.

pub mod adaptation;
pub mod chat;
pub mod decimal;
pub mod dialect;
pub mod envelope;
pub mod error;
pub mod event;
pub mod ext;
pub mod fields;
pub mod fold;
pub mod id;
pub mod limits;
pub mod media;
pub mod operation;
pub mod patch;
pub mod price;
pub mod shared_json;
pub mod trace;
pub mod usage;

pub use adaptation::{Action, Adaptation, Degradation, Ledger, Loss, Component};
pub use chat::{
    CacheHint, ChatRequest, ChatResponse, Content, Generation, Message, ReasoningOrigin, Part, PartBody, Reasoning,
    ReasoningForm, ReasoningRequest, ResponseFormat, Role, ToolCall, ToolChoice, ToolOutcome, ToolResult,
    ToolSpec,
};
pub use decimal::Decimal;
pub use dialect::Dialect;
pub use envelope::{
    BackendInfo, Outcome, Payload, PolicySpec, Request, RequestMeta, Requirements, Response, ResponsePayload,
    RoutingHints,
};
pub use error::{Error, ErrorKind, Phase, RetryScope};
pub use event::{Block, Delta, Event, FinishReason};
pub use ext::{Ext, Map};
pub use fields::Fields;
pub use fold::Fold;
pub use id::RunId;
pub use media::{Media, MediaId, MediaKind, MediaSource};
pub use operation::{Feature, Operation, Transport};
pub use price::Price;
pub use shared_json::SharedJson;
pub use trace::TraceContext;
pub use usage::Usage;
