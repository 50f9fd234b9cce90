//! Aggregation of the values of several sources into one object.

use serde_json::{Map, Value};

use crate::manifest::Aggregate;

/// Aggregates `values`, given with the names of their sources. A value that is not an object cannot be
/// merged and is stored under the name of its source.
pub(super) fn aggregate(values: Vec<(&str, Value)>, how: Aggregate) -> Map<String, Value> {
    match how {
        Aggregate::Array => {
            let list = values.into_iter().map(|(_, value)| value).collect();
            Map::from_iter([(String::from("results"), Value::Array(list))])
        }
        Aggregate::First => values
            .into_iter()
            .find(|(_, value)| !value.is_null())
            .map_or_else(Map::new, |(name, value)| as_object(name, value)),
        Aggregate::Merge => {
            let mut whole = Map::new();
            for (name, value) in values {
                merge(&mut whole, as_object(name, value));
            }
            whole
        }
    }
}

fn as_object(name: &str, value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        Value::Null => Map::new(),
        value => Map::from_iter([(String::from(name), value)]),
    }
}

/// Merges objects recursively; other values are replaced by the later one.
pub(super) fn merge(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}
