//! The schemas of this dialect's older fields: OpenAPI keywords with types in upper case. Other dialects use
//! JSON Schema, so they are converted to it; the original is noted and restored unchanged. A schema from
//! another dialect is encoded in the newer fields, which accept JSON Schema.

use ir::Map;
use serde_json::{Value, json};

const TYPES: [&str; 7] = [
    "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL",
];

pub(super) fn to_json_schema(schema: &Value) -> Value {
    let Value::Object(map) = schema else {
        return schema.clone();
    };
    let mut out = Map::new();
    for (key, value) in map {
        let value = match (key.as_str(), value) {
            ("type", Value::String(word)) if TYPES.contains(&word.as_str()) => json!(word.to_lowercase()),
            ("items" | "additionalProperties", value) => to_json_schema(value),
            ("properties" | "$defs" | "defs", Value::Object(inner)) => {
                let inner = inner.iter();
                Value::Object(
                    inner
                        .map(|(key, value)| (key.clone(), to_json_schema(value)))
                        .collect(),
                )
            }
            ("anyOf" | "prefixItems", Value::Array(list)) => {
                Value::Array(list.iter().map(to_json_schema).collect())
            }
            (_, value) => value.clone(),
        };
        out.insert(key.clone(), value);
    }
    if out.get("nullable") == Some(&Value::Bool(true))
        && let Some(word) = out.get("type").and_then(Value::as_str)
    {
        let words = json!([word, "null"]);
        out.insert(String::from("type"), words);
        out.shift_remove("nullable");
    }
    Value::Object(out)
}
