//! A message of a conversation. In memory its content is always a list of parts; the JSON may also have
//! `content` as a string, null or a list, and is encoded again in the form it was decoded from.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::chat::part::{CacheHint, Part, PartBody};
use crate::chat::tool::{ToolCall, ToolResult};
use crate::ext::{Ext, Map};
use crate::fields::Fields;

#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub id: Option<String>,
    pub role: Role,
    /// Name of the speaker, for conversations with several participants.
    pub name: Option<String>,
    /// Unix time in seconds.
    pub created_at: Option<u64>,
    pub parts: Vec<Part>,
    /// Form of the content in canonical JSON.
    pub content: Content,
    pub cache: Option<CacheHint>,
    pub metadata: Option<Map>,
    pub ext: Ext,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    System,
    Developer,
    User,
    Assistant,
    Tool,
}

/// The form of a message's content in canonical JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// `content_parts: [..]`
    #[default]
    Parts,
    /// `content: ".."`, a single text part.
    Text,
    /// `content: null`
    Null,
    /// `content: [..]`
    List,
}

impl Message {
    pub fn new(role: Role, parts: Vec<Part>) -> Self {
        Self {
            id: None,
            role,
            name: None,
            created_at: None,
            parts,
            content: Content::Parts,
            cache: None,
            metadata: None,
            ext: Ext::default(),
        }
    }

    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self {
            content: Content::Text,
            ..Self::new(role, vec![Part::text(text)])
        }
    }

    /// The text of a message that consists of one plain text part.
    pub fn plain_text(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [part] => part.plain_text(),
            _ => None,
        }
    }

    /// All text parts, joined with line breaks.
    pub fn joined_text(&self) -> String {
        self.parts
            .iter()
            .filter_map(Part::as_text)
            .collect::<Vec<_>>()
            .join("\n")
    }

    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match &part.body {
            PartBody::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Whether it has a tool call or a tool result.
    pub fn uses_tools(&self) -> bool {
        let is_tool_part = |part: &Part| matches!(part.body, PartBody::ToolCall(_) | PartBody::ToolResult(_));
        self.parts.iter().any(is_tool_part)
    }
}

#[derive(Serialize)]
struct MessageOut<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: &'a Option<String>,
    role: Role,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: &'a Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<ContentOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_parts: Option<&'a [Part]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache: &'a Option<CacheHint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: &'a Option<Map>,
    #[serde(skip_serializing_if = "Ext::is_empty")]
    ext: &'a Ext,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ContentOut<'a> {
    Text(&'a str),
    List(&'a [Part]),
    Null,
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let content = match self.content {
            Content::Text => self.plain_text().map(ContentOut::Text),
            Content::Null if self.parts.is_empty() => Some(ContentOut::Null),
            Content::List => Some(ContentOut::List(&self.parts)),
            Content::Null | Content::Parts => None,
        };
        MessageOut {
            id: &self.id,
            role: self.role,
            name: &self.name,
            created_at: &self.created_at,
            content_parts: content.is_none().then_some(&self.parts),
            content,
            cache: &self.cache,
            metadata: &self.metadata,
            ext: &self.ext,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Fields::new(Map::deserialize(deserializer)?);
        let role = fields
            .take("role")
            .ok_or_else(|| D::Error::missing_field("role"))?;
        let role: Role = serde_json::from_value(role).map_err(D::Error::custom)?;
        let (content, mut parts) = content_of(&mut fields).map_err(D::Error::custom)?;
        if let Some(call_id) = fields.string("tool_call_id") {
            let name = fields.peek_str("name").map(String::from);
            let result = ToolResult {
                call_id,
                name,
                content: parts,
                ..ToolResult::default()
            };
            parts = vec![Part::from(PartBody::ToolResult(result))];
        }
        for call in fields.array("tool_calls").unwrap_or_default() {
            parts.push(Part::from(PartBody::ToolCall(
                call_of(call).map_err(D::Error::custom)?,
            )));
        }
        let mut read = |key: &str| fields.take(key).filter(|value| !value.is_null());
        let cache = read("cache")
            .map(serde_json::from_value)
            .transpose()
            .map_err(D::Error::custom)?;
        let ext: Option<Ext> = read("ext")
            .map(serde_json::from_value)
            .transpose()
            .map_err(D::Error::custom)?;
        let metadata = fields.object("metadata").map(Fields::rest);
        let message = Self {
            id: fields.string("id"),
            role,
            name: fields.string("name"),
            created_at: fields.u64("created_at"),
            parts,
            content,
            cache,
            metadata,
            ext: ext.unwrap_or_default(),
        };
        match fields.rest().keys().next() {
            Some(key) => Err(D::Error::custom(format!(
                "unknown message field `{key}`; put it into `ext`"
            ))),
            None => Ok(message),
        }
    }
}

/// `content_parts` or `content`, never both.
fn content_of(fields: &mut Fields) -> Result<(Content, Vec<Part>), String> {
    let parts = fields.take("content_parts");
    let content = fields.take("content");
    let list = |value: Value| serde_json::from_value(value).map_err(|error| error.to_string());
    match (parts, content) {
        (Some(_), Some(_)) => Err(String::from(
            "a message must not have both `content_parts` and `content`",
        )),
        (Some(value), None) => Ok((Content::Parts, list(value)?)),
        (None, Some(Value::String(text))) => Ok((Content::Text, vec![Part::text(text)])),
        (None, Some(Value::Null)) => Ok((Content::Null, Vec::new())),
        (None, Some(value)) => Ok((Content::List, list(value)?)),
        (None, None) => Ok((Content::Parts, Vec::new())),
    }
}

/// An entry of `tool_calls`: `{"id", "function": {"name", "arguments"}}`.
fn call_of(value: Value) -> Result<ToolCall, String> {
    let mut call = Fields::of(value).ok_or("a tool call must be an object")?;
    let mut function = call
        .object("function")
        .ok_or("a tool call requires a `function`")?;
    let name = function.string("name").ok_or("a tool call requires a name")?;
    let id = call.string("id").unwrap_or_default();
    Ok(match function.take("arguments") {
        Some(Value::String(raw)) => ToolCall::new(id, name, raw),
        Some(value) => ToolCall::from_value(id, name, value),
        None => ToolCall::new(id, name, ""),
    })
}
