//! The one stream of events that every provider's stream becomes. Content comes in blocks: a block is
//! started, grows by deltas, and ends; blocks of one answer may overlap.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chat::{ReasoningOrigin, ReasoningForm};
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
        /// Unix time in seconds, as the provider says.
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
    /// A total so far; it replaces what was reported before.
    Usage {
        usage: Usage,
    },
    /// Facts about the whole answer that only their dialect has a word for.
    Meta {
        ext: Ext,
    },
    /// Something worth knowing that does not end the stream.
    Warning {
        warning: Warning,
    },
    /// An event that only its dialect understands, word for word.
    VendorSpecific {
        dialect: String,
        name: Option<String>,
        data: Value,
    },
    /// The back-end's own words for the whole answer, for a caller who asked for them and may see them. Never
    /// part of a stream that leaves this server.
    Raw {
        data: Value,
    },
    Finish {
        reason: FinishReason,
    },
    /// The end, and not a good one. Nothing follows.
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
    /// A block that only its dialect understands; it arrives whole.
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
    /// A piece of the arguments' JSON text, as the model writes it.
    ToolArguments {
        json: String,
    },
    /// A piece of the proof that comes with reasoning.
    Signature {
        signature: String,
    },
    /// Reasoning that only its origin can read.
    Sealed {
        data: String,
    },
    /// A piece of the base64 text of media.
    Data {
        base64: String,
    },
    /// An item for a list that the dialect keeps beside the block, such as citations.
    Annotation {
        dialect: Dialect,
        list: String,
        value: Value,
    },
    /// Facts about the block that only their dialect has a word for.
    Meta {
        ext: Ext,
    },
}

/// Something that went not quite as asked, with a name that programs can test for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    pub code: String,
    pub message: String,
}

/// The code of [`Warning`] for a field of the request that the target could not take as it was.
pub const ADAPTED: &str = "adapted";
/// The code of [`Warning`] for an answer that was closed before the model was done with it.
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
    /// One of the request's stop sequences was met.
    StopSequence,
    Length,
    ToolCalls,
    ContentFilter,
    /// The provider paused a long turn; the same messages continue it.
    Pause,
    /// A reason that this vocabulary does not know, word for word.
    Other(String),
}
