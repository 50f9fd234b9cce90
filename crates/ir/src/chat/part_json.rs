//! The JSON of a part: `{"type": "text", "text": ".."}`, `{"type": "image", "image": {..}}` and so on.
//! A part of unknown type is stored as raw JSON and encoded unchanged.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::chat::part::{Part, PartBody};
use crate::dialect::Dialect;
use crate::ext::{Ext, Map};
use crate::fields::Fields;
use crate::media::{Media, MediaKind};

const OWN: Dialect = Dialect::Canonical;

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_map()
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = Map::deserialize(deserializer)?;
        Self::from_map(map).map_err(D::Error::custom)
    }
}

impl Part {
    fn to_map(&self) -> Result<Map, serde_json::Error> {
        let mut map = match &self.body {
            PartBody::Text(text) => object(json!({"type": "text", "text": text})),
            PartBody::Refusal(text) => object(json!({"type": "refusal", "refusal": text})),
            PartBody::Media(media) => {
                let word = media.kind.as_str();
                object(json!({"type": word, word: media}))
            }
            PartBody::Reasoning(reasoning) => typed("reasoning", reasoning)?,
            PartBody::ToolCall(call) => typed("tool_call", call)?,
            PartBody::ToolResult(result) => typed("tool_result", result)?,
            PartBody::Unknown { dialect, raw } if dialect == OWN.as_str() => object(raw.clone()),
            PartBody::Unknown { dialect, raw } => {
                object(json!({"type": "unknown", "dialect": dialect, "raw": raw}))
            }
        };
        if let Some(cache) = &self.cache {
            map.insert(String::from("cache"), serde_json::to_value(cache)?);
        }
        self.ext.restore(OWN, &mut map);
        let mut ext = self.ext.clone();
        ext.take(OWN);
        if !ext.is_empty() {
            map.insert(String::from("ext"), serde_json::to_value(ext)?);
        }
        Ok(map)
    }

    fn from_map(map: Map) -> Result<Self, serde_json::Error> {
        let mut fields = Fields::new(map);
        let kind = fields.string("type").unwrap_or_default();
        let cache = read(&mut fields, "cache")?;
        let mut ext: Ext = read(&mut fields, "ext")?.unwrap_or_default();
        let body = match kind.as_str() {
            "text" => PartBody::Text(text_of(&mut fields, "text")?),
            "refusal" => PartBody::Refusal(text_of(&mut fields, "refusal")?),
            "image" | "audio" | "video" | "document" | "media" => {
                let value = fields.take(&kind).ok_or_else(|| missing(&kind))?;
                let mut media: Media = serde_json::from_value(value)?;
                media.kind = MediaKind::from_word(&kind);
                PartBody::Media(Box::new(media))
            }
            "reasoning" => PartBody::Reasoning(flattened(&mut fields, REASONING)?),
            "tool_call" => PartBody::ToolCall(flattened(&mut fields, TOOL_CALL)?),
            "tool_result" => PartBody::ToolResult(flattened(&mut fields, TOOL_RESULT)?),
            "unknown" => PartBody::Unknown {
                dialect: fields.string("dialect").unwrap_or_default(),
                raw: fields.take("raw").unwrap_or_default(),
            },
            _ => {
                let mut raw = object(json!({"type": kind}));
                raw.extend(std::mem::take(&mut fields).rest());
                PartBody::Unknown {
                    dialect: String::from(OWN.as_str()),
                    raw: Value::Object(raw),
                }
            }
        };
        ext.extend(OWN, fields.rest());
        Ok(Self { body, cache, ext })
    }
}

const REASONING: &[&str] = &["form", "id", "text", "data", "signature", "origin"];
const TOOL_CALL: &[&str] = &["id", "name", "arguments_raw", "arguments"];
const TOOL_RESULT: &[&str] = &["call_id", "name", "outcome", "content"];

/// A value whose fields `keys` are flattened into its part.
fn flattened<T: for<'a> Deserialize<'a>>(fields: &mut Fields, keys: &[&str]) -> Result<T, serde_json::Error> {
    let mut own = Map::new();
    for key in keys {
        if let Some(value) = fields.take(key) {
            own.insert(String::from(*key), value);
        }
    }
    serde_json::from_value(Value::Object(own))
}

fn read<T: for<'a> Deserialize<'a>>(fields: &mut Fields, key: &str) -> Result<Option<T>, serde_json::Error> {
    fields.take(key).map(serde_json::from_value).transpose()
}

fn text_of(fields: &mut Fields, key: &str) -> Result<String, serde_json::Error> {
    fields.string(key).ok_or_else(|| missing(key))
}

fn missing(key: &str) -> serde_json::Error {
    serde_json::Error::custom(format!("the part has no `{key}`"))
}

fn typed<T: Serialize>(kind: &str, value: &T) -> Result<Map, serde_json::Error> {
    let mut map = object(json!({"type": kind}));
    map.extend(object(serde_json::to_value(value)?));
    Ok(map)
}

fn object(value: Value) -> Map {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
