//! A minimal valid input for a schema, for modules without a configured input. Only required fields are
//! filled in; a schema with references, patterns or formats has no sample.

use serde_json::{Map, Value, json};

use crate::limits;

const TEXT: &str = "Two words, said by a conformance check.";

/// `None` if no valid value can be derived from the schema.
pub(super) fn sample(schema: &Value) -> Option<Value> {
    value(schema, 0)
}

fn value(schema: &Value, depth: usize) -> Option<Value> {
    if depth > limits::REFERENCE_HOPS_MAX || schema.get("$ref").is_some() {
        return None;
    }
    let first = |key: &str| schema.get(key)?.as_array()?.first().cloned();
    if let Some(known) = schema.get("const").or_else(|| schema.get("default")) {
        return Some(known.clone());
    }
    if let Some(known) = first("examples").or_else(|| first("enum")) {
        return Some(known);
    }
    let number = |key: &str| schema.get(key).and_then(Value::as_u64);
    match kind(schema)? {
        "object" => object(schema, depth).map(Value::Object),
        "array" => {
            let count = usize::try_from(number("minItems").unwrap_or(0)).ok()?.min(16);
            let none = json!({});
            let item = value(schema.get("items").unwrap_or(&none), depth + 1);
            match count {
                0 => Some(json!([])),
                count => Some(Value::Array(vec![item?; count])),
            }
        }
        "string" => {
            // No value is generated for a pattern or a format.
            if schema.get("pattern").is_some() || schema.get("format").is_some() {
                return None;
            }
            let least = usize::try_from(number("minLength").unwrap_or(0)).ok()?;
            let most = number("maxLength").and_then(|most| usize::try_from(most).ok());
            let text = TEXT.repeat(least.min(10_000) / TEXT.len() + 1);
            let text: String = text
                .chars()
                .take(most.unwrap_or_else(|| TEXT.len().max(least)))
                .collect();
            Some(Value::from(text))
        }
        "integer" | "number" => Some(schema.get("minimum").cloned().unwrap_or_else(|| json!(1))),
        "boolean" => Some(json!(true)),
        "null" => Some(Value::Null),
        _ => None,
    }
}

fn kind(schema: &Value) -> Option<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => Some(kind),
        Some(Value::Array(kinds)) => kinds.first()?.as_str(),
        _ if schema.get("properties").is_some() => Some("object"),
        _ => None,
    }
}

/// The required properties only.
fn object(schema: &Value, depth: usize) -> Option<Map<String, Value>> {
    let none = Vec::new();
    let required = schema.get("required").and_then(Value::as_array).unwrap_or(&none);
    let mut map = Map::new();
    for name in required.iter().filter_map(Value::as_str) {
        let inner = schema
            .get("properties")
            .and_then(|properties| properties.get(name))?;
        map.insert(String::from(name), value(inner, depth + 1)?);
    }
    Some(map)
}
