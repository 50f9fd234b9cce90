//! Tools: declarations, calls and results. Arguments are stored as the text that the model wrote, together
//! with the parsed value if the text is JSON.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::chat::part::{CacheHint, Part};
use crate::ext::{Ext, Map};
use crate::json_values;

/// A function that a model may call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolSpec {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    /// Whether the provider must enforce the schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheHint>,
    /// A tool that the provider runs, in its dialect. All other fields are empty then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosted: Option<HostedTool>,
    #[serde(skip_serializing_if = "Ext::is_empty")]
    pub ext: Ext,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostedTool {
    pub dialect: String,
    pub raw: Value,
}

impl ToolSpec {
    pub fn hosted(dialect: crate::Dialect, raw: Value) -> Self {
        let hosted = HostedTool {
            dialect: String::from(dialect.as_str()),
            raw,
        };
        Self {
            hosted: Some(hosted),
            ..Self::default()
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    Auto,
    None,
    Required,
    /// Exactly this tool.
    Tool(String),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// The arguments as the model wrote them; not necessarily JSON.
    pub arguments_raw: String,
    /// The parsed arguments; `None` if they are not JSON. An empty text means no arguments.
    pub arguments: Option<Value>,
}

impl ToolCall {
    pub fn new(id: impl Into<String>, name: impl Into<String>, raw: impl Into<String>) -> Self {
        let arguments_raw = raw.into();
        let arguments = parse_arguments(&arguments_raw);
        Self {
            id: id.into(),
            name: name.into(),
            arguments_raw,
            arguments,
        }
    }

    /// From a dialect whose arguments are JSON values instead of text.
    pub fn from_value(id: impl Into<String>, name: impl Into<String>, arguments: Value) -> Self {
        let arguments_raw = arguments.to_string();
        Self {
            id: id.into(),
            name: name.into(),
            arguments_raw,
            arguments: Some(arguments),
        }
    }

    /// The arguments as an object, which most dialects require.
    pub fn object(&self) -> Option<&Map> {
        self.arguments.as_ref()?.as_object()
    }

    /// Parses the raw text again after it has grown.
    pub fn reparse(&mut self) {
        self.arguments = parse_arguments(&self.arguments_raw);
    }
}

fn parse_arguments(raw: &str) -> Option<Value> {
    if raw.trim().is_empty() {
        return Some(Value::Object(Map::new()));
    }
    if !json_values::within_limit(raw.as_bytes()) {
        return None;
    }
    serde_json::from_str(raw).ok()
}

#[derive(Serialize, Deserialize)]
struct ToolCallJson {
    #[serde(default)]
    id: String,
    name: String,
    #[serde(default)]
    arguments_raw: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arguments: Option<Value>,
}

impl Serialize for ToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ToolCallJson {
            id: self.id.clone(),
            name: self.name.clone(),
            arguments_raw: Some(self.arguments_raw.clone()),
            arguments: self.arguments.clone(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ToolCall {
    /// The raw text takes precedence; without it the value is serialised.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = ToolCallJson::deserialize(deserializer)?;
        Ok(match (json.arguments_raw, json.arguments) {
            (Some(raw), _) => Self::new(json.id, json.name, raw),
            (None, Some(Value::String(raw))) => Self::new(json.id, json.name, raw),
            (None, Some(value)) => Self::from_value(json.id, json.name, value),
            (None, None) => Self::new(json.id, json.name, ""),
        })
    }
}

/// The result of a tool call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolResult {
    pub call_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "ToolOutcome::is_success")]
    pub outcome: ToolOutcome,
    pub content: Vec<Part>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutcome {
    #[default]
    Success,
    Error,
    /// Denied by an approver.
    Denied,
    /// Waiting for human review.
    Halted,
}

impl ToolOutcome {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub fn is_success(&self) -> bool {
        *self == Self::Success
    }
}

impl ToolResult {
    /// All text of the result, joined with line breaks.
    pub fn joined_text(&self) -> String {
        self.content
            .iter()
            .filter_map(Part::as_text)
            .collect::<Vec<_>>()
            .join("\n")
    }
}
