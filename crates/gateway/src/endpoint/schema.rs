//! JSON Schemas of the OpenAPI document. They describe what clients can rely on; the exact schemas of modules
//! are served with the modules.

use serde_json::{Map, Value, json};

pub(crate) fn text() -> Value {
    json!({"type": "string"})
}

/// A value of a JSON type, with a description.
pub(crate) fn any_of_type(kind: &str, about: &str) -> Value {
    json!({"type": kind, "description": about})
}

pub(crate) fn one_of(values: &[&str]) -> Value {
    json!({"type": "string", "enum": values})
}

/// An object that has at least these fields.
pub(crate) fn object(fields: &[(&str, Value)]) -> Value {
    let required: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let properties: Map<String, Value> = fields
        .iter()
        .map(|(name, schema)| (String::from(*name), schema.clone()))
        .collect();
    json!({"type": "object", "required": required, "properties": properties})
}

/// The wrapper of an execute request, or the input itself.
pub(crate) fn execute_body() -> Value {
    json!({
        "description": "The module input, or a wrapper with `input` whose other keys all start with an underscore.",
        "anyOf": [{"$ref": "#/components/schemas/Execute"}, {"type": "object"}]
    })
}

/// Schemas that are referenced by name.
pub(super) fn components() -> Value {
    // A test checks that the file is JSON and that every reference resolves.
    serde_json::from_str(include_str!("components.json")).unwrap_or_default()
}
