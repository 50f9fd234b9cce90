//! A complete chat response.

use serde::{Deserialize, Serialize};

use crate::chat::part::{Part, PartBody};
use crate::chat::tool::ToolCall;
use crate::event::{FinishReason, Warning};
use crate::ext::Ext;
use crate::usage::Usage;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChatResponse {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Unix time in seconds, as reported by the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<u64>,
    #[serde(rename = "content_parts")]
    pub parts: Vec<Part>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    #[serde(skip_serializing_if = "Ext::is_empty")]
    pub ext: Ext,
}

impl ChatResponse {
    /// All text of the answer, without reasoning.
    pub fn text(&self) -> String {
        self.parts.iter().filter_map(Part::as_text).collect()
    }

    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match &part.body {
            PartBody::ToolCall(call) => Some(call),
            _ => None,
        })
    }
}
