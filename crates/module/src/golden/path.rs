//! Paths in golden tests: `issues[*].type`, `meta.confidence`, with an optional `$.` prefix. A path is
//! resolved in the data, or in the envelope if the data has no match.

use serde_json::Value;

use crate::expression::{PathSegment, parse_path};

/// A parsed path, with the text that the test has.
#[derive(Clone, Debug)]
pub(super) struct ValuePath {
    pub(super) text: String,
    segments: Vec<PathSegment>,
}

impl ValuePath {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let whole = match text.strip_prefix('$') {
            Some(_) => String::from(text),
            None => format!("$.{text}"),
        };
        let parsed = parse_path(&whole).map_err(|error| format!("invalid path `{text}`: {error}"))?;
        Ok(Self {
            text: String::from(text),
            segments: parsed.segments,
        })
    }

    /// Every value at the path, with its pointer into the envelope.
    pub(super) fn values<'a>(&self, envelope: &'a Value) -> Vec<(String, &'a Value)> {
        let (start, data) = match (envelope.get("data"), envelope.get("partial_data")) {
            (Some(data), _) => ("/data", Some(data)),
            (None, partial) => ("/partial_data", partial),
        };
        let from_data = data.map(|data| follow(data, start, &self.segments));
        match from_data {
            Some(found) if !found.is_empty() => found,
            _ => follow(envelope, "", &self.segments),
        }
    }
}

fn follow<'a>(value: &'a Value, pointer: &str, segments: &[PathSegment]) -> Vec<(String, &'a Value)> {
    let Some((first, rest)) = segments.split_first() else {
        return vec![(String::from(pointer), value)];
    };
    let below = |key: &str| crate::document::join(pointer, key);
    match (first, value) {
        (PathSegment::Name(name), Value::Object(map)) => map
            .get(name)
            .map_or_else(Vec::new, |value| follow(value, &below(name), rest)),
        (PathSegment::Index(index), Value::Array(items)) => items
            .get(*index)
            .map_or_else(Vec::new, |item| follow(item, &below(&index.to_string()), rest)),
        (PathSegment::Every, Value::Array(items)) => items
            .iter()
            .enumerate()
            .flat_map(|(index, item)| follow(item, &below(&index.to_string()), rest))
            .collect(),
        _ => Vec::new(),
    }
}
