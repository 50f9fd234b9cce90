//! A chat request: messages, tools, response format and generation settings.

use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::chat::message::Message;
use crate::chat::part::{Part, PartBody};
use crate::chat::tool::{ToolChoice, ToolSpec};
use crate::ext::{Ext, Map};
use crate::media::Media;
use crate::shared_json::SharedJson;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChatRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub messages: Vec<Message>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolSpec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Generation::is_empty")]
    pub generation: Generation,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<ReasoningRequest>,
    /// Requested output modalities, if not only text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modalities: Vec<String>,
    /// Opaque id of the end user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra: Map,
    #[serde(skip_serializing_if = "Ext::is_empty")]
    pub ext: Ext,
    /// Fields that this type does not define.
    #[serde(flatten)]
    pub rest: Map,
}

/// Generation settings. Numbers keep their original notation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Generation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_logprobs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    #[serde(flatten)]
    pub rest: Map,
}

impl Generation {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResponseFormat {
    Text,
    JsonObject,
    JsonSchema {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        schema: SharedJson,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
    },
}

/// Requested reasoning effort, in the notation of the source dialect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReasoningRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// `minimal`, `low`, `medium`, `high`, ..
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u64>,
    /// Whether and how reasoning is returned (`auto`, `concise`, `detailed`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

impl ChatRequest {
    pub fn new(model: impl Into<String>, messages: Vec<Message>) -> Self {
        Self {
            model: Some(model.into()),
            messages,
            ..Self::default()
        }
    }

    pub fn streams(&self) -> bool {
        self.generation.stream == Some(true)
    }

    /// Whether tools are declared, called or have results.
    pub fn uses_tools(&self) -> bool {
        !self.tools.is_empty() || self.messages.iter().any(Message::uses_tools)
    }

    /// All media of all messages, including media in tool results.
    pub fn media_mut(&mut self) -> Vec<&mut Media> {
        let mut found = Vec::new();
        for message in &mut self.messages {
            collect(&mut message.parts, &mut found);
        }
        found
    }
}

fn collect<'a>(parts: &'a mut [Part], found: &mut Vec<&'a mut Media>) {
    for part in parts {
        match &mut part.body {
            PartBody::Media(media) => found.push(media),
            PartBody::ToolResult(result) => collect(&mut result.content, found),
            _ => {}
        }
    }
}
