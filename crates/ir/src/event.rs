//! The one stream of events that every provider's stream becomes. Content comes in blocks: a block is
//! started, grows by deltas, and ends; blocks of one answer may overlap.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::usage::Usage;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    Started {
        id: Option<String>,
        model: Option<String>,
    },
    BlockStart {
        index: u32,
        block: Block,
    },
    BlockDelta {
        index: u32,
        delta: Delta,
    },
    BlockEnd {
        index: u32,
    },
    Usage {
        usage: Usage,
    },
    Finish {
        reason: FinishReason,
    },
    Error {
        error: Error,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Block {
    Text,
    Reasoning,
    ToolCall { id: String, name: String },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Delta {
    Text {
        text: String,
    },
    Reasoning {
        text: String,
    },
    /// A piece of the arguments' JSON text, as the model writes it.
    ToolArguments {
        json: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    Stop,
    Length,
    ToolCalls,
    ContentFilter,
    /// A reason that this vocabulary does not know, word for word.
    Other(String),
}
