//! Paths in golden tests: `issues[*].type`, `meta.confidence`, with an optional `$.` prefix. A path is
//! resolved in the data, or in the envelope if the data has no match.

use serde_json::Value;

use crate::expression::{PathSegment, parse_path};

/// Every value at a path, with its pointer into the envelope.
pub(super) fn values<'a>(envelope: &'a Value, path: &str) -> Result<Vec<(String, &'a Value)>, String> {
    let whole = match path.strip_prefix('$') {
        Some(_) => String::from(path),
        None => format!("$.{path}"),
    };
    let parsed = parse_path(&whole).map_err(|error| format!("invalid path `{path}`: {error}"))?;
    let data = envelope.get("data").or_else(|| envelope.get("partial_data"));
    let start = if envelope.get("data").is_some() {
        "/data"
    } else {
        "/partial_data"
    };
    let from_data = data.map(|data| follow(data, start, &parsed.segments));
    match from_data {
        Some(found) if !found.is_empty() => Ok(found),
        _ => Ok(follow(envelope, "", &parsed.segments)),
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
