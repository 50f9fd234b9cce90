//! The event stream into which every provider's stream is decoded. Content is divided into blocks: a block is
//! started, grows by deltas, and ends; blocks of one answer may overlap.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chat::{ReasoningForm, ReasoningOrigin};
use crate::dialect::Dialect;
use crate::error::Error;
use crate::ext::Ext;
use crate::media::Media;
use crate::usage::Usage;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    Started {
        id: Option<String>,
        model: Option<String>,
        /// Unix time in seconds, as reported by the provider.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        created: Option<u64>,
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
    /// Totals so far; they replace earlier totals.
    Usage {
        usage: Usage,
    },
    /// Dialect-specific facts about the whole answer.
    Meta {
        ext: Ext,
    },
    /// A problem that does not end the stream.
    Warning {
        warning: Warning,
    },
    /// An event that only its dialect defines, unchanged.
    #[serde(rename = "foreign")]
    VendorSpecific {
        dialect: String,
        name: Option<String>,
        data: Value,
    },
    /// The back-end's raw response, for a caller that requested it and is authorised to read it. Never sent
    /// to clients as a stream event.
    Raw {
        data: Value,
    },
    Finish {
        reason: FinishReason,
    },
    /// Terminal error. No event follows.
    Error {
        error: Error,
    },
}

impl Event {
    pub fn text(index: u32, text: impl Into<String>) -> Self {
        Self::BlockDelta {
            index,
            delta: Delta::Text { text: text.into() },
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Block {
    Text,
    Refusal,
    Reasoning {
        #[serde(default)]
        form: ReasoningForm,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<ReasoningOrigin>,
    },
    ToolCall {
        id: String,
        name: String,
    },
    Media {
        media: Box<Media>,
    },
    /// A block that only its dialect defines; it has no deltas.
    Unknown {
        dialect: String,
        raw: Value,
    },
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
    /// A fragment of the arguments' JSON text.
    ToolArguments {
        json: String,
    },
    /// A fragment of the signature of reasoning.
    Signature {
        signature: String,
    },
    /// Encrypted reasoning that only its origin can decrypt.
    Sealed {
        data: String,
    },
    /// A fragment of the base64 text of media.
    Data {
        base64: String,
    },
    /// An item of a dialect-specific list of the block, such as citations.
    Annotation {
        dialect: Dialect,
        list: String,
        value: Value,
    },
    /// Dialect-specific facts about the block.
    Meta {
        ext: Ext,
    },
}

/// A deviation from the request that does not fail it, with a machine-readable code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    pub code: String,
    pub message: String,
}

/// The code of [`Warning`] for a request field that was adapted to the target.
pub const ADAPTED: &str = "adapted";
/// The code of [`Warning`] for an answer that was closed before the model finished it.
pub const SHORTENED: &str = "shortened";

impl Warning {
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    Stop,
    /// The model generated a stop sequence of the request.
    StopSequence,
    Length,
    ToolCalls,
    ContentFilter,
    /// The provider paused a long turn; sending the same messages continues it.
    Pause,
    /// A reason that this type does not define, unchanged.
    Other(String),
}
