//! Conversation with a model: what is asked, message by message and part by part, and what comes back.

mod message;
mod part;
mod part_json;
mod reasoning;
mod request;
mod response;
mod tool;

pub use message::{Content, Message, Role};
pub use part::{CacheHint, Part, PartBody};
pub use reasoning::{ReasoningOrigin, Reasoning, ReasoningForm};
pub use request::{ChatRequest, Generation, ReasoningRequest, ResponseFormat};
pub use response::ChatResponse;
pub use tool::{ToolCall, ToolChoice, ToolOutcome, ToolResult, ToolSpec};
