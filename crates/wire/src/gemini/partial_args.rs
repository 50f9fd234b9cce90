//! Call arguments that are streamed value by value: each piece has a path (`$.a.b[0]`), and a string may be
//! split into several pieces.

use ir::Map;
use serde_json::Value;

/// Maximum depth and length of a path.
const STEPS_MAX: usize = 64;
/// Maximum gap between the end of a list and an index.
const GAP_MAX: usize = 64;

enum ArgPathStep<'a> {
    Key(&'a str),
    Index(usize),
}

/// Adds one piece to the arguments; `None` if its path is invalid or it has no value.
pub(super) fn add(arguments: &mut Value, piece: &Value) -> Option<()> {
    let steps = steps(piece.get("jsonPath")?.as_str()?)?;
    let mut place = arguments;
    for step in steps {
        match step {
            ArgPathStep::Key(key) => {
                if !place.is_object() {
                    *place = Value::Object(Map::new());
                }
                let Value::Object(map) = place else { return None };
                place = map.entry(key).or_insert(Value::Null);
            }
            ArgPathStep::Index(at) => {
                if !place.is_array() {
                    *place = Value::Array(Vec::new());
                }
                let Value::Array(list) = place else { return None };
                if at > list.len() + GAP_MAX {
                    return None;
                }
                if list.len() <= at {
                    list.resize(at + 1, Value::Null);
                }
                place = list.get_mut(at)?;
            }
        }
    }
    let value = ["stringValue", "numberValue", "boolValue"]
        .iter()
        .find_map(|key| piece.get(key));
    match (place, value) {
        (Value::String(text), Some(Value::String(more))) => text.push_str(more),
        (place, Some(value)) => *place = value.clone(),
        (place, None) if piece.get("nullValue").is_some() => *place = Value::Null,
        (_, None) => return None,
    }
    Some(())
}

fn steps(path: &str) -> Option<Vec<ArgPathStep<'_>>> {
    let mut steps = Vec::new();
    let mut rest = path.strip_prefix('$')?;
    while !rest.is_empty() {
        if steps.len() >= STEPS_MAX {
            return None;
        }
        if let Some(tail) = rest.strip_prefix('[') {
            let (inner, after) = tail.split_once(']')?;
            let quoted = inner.trim_matches(|c| c == '\'' || c == '"');
            match inner.parse::<usize>() {
                Ok(at) => steps.push(ArgPathStep::Index(at)),
                Err(_) => steps.push(ArgPathStep::Key(quoted)),
            }
            rest = after;
        } else {
            let tail = rest.strip_prefix('.')?;
            let end = tail.find(['.', '[']).unwrap_or(tail.len());
            let (key, after) = tail.split_at(end);
            steps.push(ArgPathStep::Key(key));
            rest = after;
        }
    }
    Some(steps)
}
