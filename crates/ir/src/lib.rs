//! The IR: canonical requests and responses, stream events and their fold, media, usage, errors, ids. Plain
//! data without IO, clock or randomness. All other crates use these types.
//!
//! Fields of a foreign document that the IR does not define are stored in an [`Ext`], scoped to their
//! dialect, and encoded unchanged for that dialect.

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
pub mod json_field_ranges;
pub mod json_values;
pub mod limits;
pub mod media;
pub mod operation;
pub mod patch;
pub mod price;
pub mod shared_json;
pub mod trace;
pub mod usage;

pub use adaptation::{Action, Adaptation, Component, Degradation, Ledger, Loss};
pub use chat::{
    CacheHint, ChatRequest, ChatResponse, Content, Generation, GenerationOptions, Message, Part, PartBody,
    Reasoning, ReasoningForm, ReasoningOrigin, ReasoningRequest, ResponseFormat, Role, ToolCall, ToolChoice,
    ToolOutcome, ToolResult, ToolSpec,
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
pub use json_field_ranges::FieldRanges;
pub use media::{Media, MediaId, MediaKind, MediaSource};
pub use operation::{Feature, Operation, Transport};
pub use price::Price;
pub use shared_json::SharedJson;
pub use trace::TraceContext;
pub use usage::Usage;
