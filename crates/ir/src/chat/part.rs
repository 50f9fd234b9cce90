//! A part of a message: text, media, reasoning, a tool call or a tool result. The order is significant, so
//! calls and results are parts of the same list.

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
    /// The model's text for declining to answer.
    Refusal(String),
    /// A part that only its dialect defines; encoded unchanged for that dialect.
    Unknown {
        dialect: String,
        raw: Value,
    },
}

/// A request to the provider to cache the prompt up to here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheHint {
    /// Lifetime in the dialect's notation (`5m`, `1h`).
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

    /// The text of a part without cache hint and without dialect fields.
    pub fn plain_text(&self) -> Option<&str> {
        self.as_text()
            .filter(|_| self.cache.is_none() && self.ext.is_empty())
    }

    /// Recomputes derived values after the last delta.
    #[must_use]
    pub fn settled(mut self) -> Self {
        if let PartBody::ToolCall(call) = &mut self.body {
            call.reparse();
        }
        self
    }
}
