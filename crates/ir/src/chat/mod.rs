//! Chat requests and responses: messages, parts, tools and generation settings.

mod generation_options;
mod message;
mod part;
mod part_json;
mod reasoning;
mod request;
mod response;
mod tool;

pub use generation_options::GenerationOptions;
pub use message::{Content, Message, Role};
pub use part::{CacheHint, Part, PartBody};
pub use reasoning::{Reasoning, ReasoningForm, ReasoningOrigin};
pub use request::{ChatRequest, Generation, ReasoningRequest, ResponseFormat};
pub use response::ChatResponse;
pub use tool::{ToolCall, ToolChoice, ToolOutcome, ToolResult, ToolSpec};
