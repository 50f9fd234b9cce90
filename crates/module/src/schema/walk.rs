//! Visits every schema in a document. Keywords determine what is a schema and what is data or a name: a
//! property called `$ref` is not a reference.

use serde_json::{Map, Value};

use crate::document::join;
use crate::limits;

/// Keywords whose value is one schema.
pub(super) const ONE: &[&str] = &[
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords whose value is a list of schemas. `items` may be either.
pub(super) const MANY: &[&str] = &["allOf", "anyOf", "items", "oneOf", "prefixItems"];

/// Keywords whose value maps names to schemas.
pub(super) const NAMED: &[&str] = &[
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
];

/// Whether to descend into the schema just visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    Descend,
    Skip,
}

/// Visits `schema` and every schema below it, with their pointers.
pub fn walk<'a>(
    schema: &'a Value,
    pointer: &str,
    visit: &mut dyn FnMut(&str, &'a Map<String, Value>) -> Visit,
) {
    descend(schema, pointer, 0, visit);
}

fn descend<'a>(
    schema: &'a Value,
    pointer: &str,
    depth: usize,
    visit: &mut dyn FnMut(&str, &'a Map<String, Value>) -> Visit,
) {
    let Value::Object(map) = schema else { return };
    if depth > limits::NESTING_MAX || visit(pointer, map) == Visit::Skip {
        return;
    }
    for (key, value) in map {
        match value {
            Value::Object(inner) if NAMED.contains(&key.as_str()) => {
                let below = join(pointer, key);
                for (name, schema) in inner {
                    descend(schema, &join(&below, name), depth + 1, visit);
                }
            }
            Value::Object(_) if ONE.contains(&key.as_str()) => {
                descend(value, &join(pointer, key), depth + 1, visit);
            }
            Value::Array(items) if MANY.contains(&key.as_str()) => {
                let below = join(pointer, key);
                for (index, schema) in items.iter().enumerate() {
                    descend(schema, &join(&below, &index.to_string()), depth + 1, visit);
                }
            }
            _ => {}
        }
    }
}
