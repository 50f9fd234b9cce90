//! A part of a message: text, media, reasoning, a call of a tool or its result. Order is meaning, so
//! calls and results stand among the other parts and not beside them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chat::reasoning::Reasoning;
use crate::chat::tool::{ToolCall, ToolResult};
use crate::ext::Ext;
use crate::media::Media;

#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub body: PartBody,
    pub cache: Option<CacheHint>,
    pub ext: Ext,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PartBody {
    Text(String),
    Media(Box<Media>),
    Reasoning(Reasoning),
    ToolCall(ToolCall),
    ToolResult(ToolResult),
    /// The model's own words for declining.
    Refusal(String),
    /// What only its dialect understands; it goes back there as it came.
    Unknown {
        dialect: String,
        raw: Value,
    },
}

/// A wish that the provider remember everything up to here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheHint {
    /// For how long, in the words of the dialect (`5m`, `1h`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

impl From<PartBody> for Part {
    fn from(body: PartBody) -> Self {
        Self {
            body,
            cache: None,
            ext: Ext::default(),
        }
    }
}

impl From<Media> for Part {
    fn from(media: Media) -> Self {
        Self::from(PartBody::Media(Box::new(media)))
    }
}

impl Part {
    pub fn text(text: impl Into<String>) -> Self {
        Self::from(PartBody::Text(text.into()))
    }

    pub fn as_text(&self) -> Option<&str> {
        match &self.body {
            PartBody::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Text and nothing else: no cache hint, nothing left over by a dialect.
    pub fn plain_text(&self) -> Option<&str> {
        self.as_text()
            .filter(|_| self.cache.is_none() && self.ext.is_empty())
    }

    /// After the last delta: what is derived from grown text is derived again.
    #[must_use]
    pub fn settled(mut self) -> Self {
        if let PartBody::ToolCall(call) = &mut self.body {
            call.reparse();
        }
        self
    }
}
