//! The schema of a whole answer: the envelope around the module's own schema of `data`, complete in
//! itself, for back-ends that decode under a schema.

use serde_json::{Map, Value, json};

use crate::context;
use crate::limits;
use crate::module::Module;
use crate::schema::Section;

pub fn output_schema(module: &Module) -> Value {
    let contract = &module.contract;
    let data = contract
        .schema(Section::Data)
        .cloned()
        .unwrap_or_else(|| json!({"type": "object"}));
    let mut schema = json!({
        "type": "object",
        "properties": {
            "ok": {"type": "boolean"},
            "meta": {
                "type": "object",
                "properties": {
                    "confidence": {"type": "number", "minimum": 0, "maximum": 1},
                    "risk": {"type": "string", "enum": ["none", "low", "medium", "high"]},
                    "explain": {"type": "string", "maxLength": limits::EXPLAIN_CHARS_MAX}
                },
                "required": ["confidence", "risk", "explain"]
            },
            "data": data,
            "error": {
                "type": "object",
                "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
                "required": ["code", "message"]
            }
        },
        "required": ["ok", "meta"],
        "if": {"properties": {"ok": {"const": true}}},
        "then": {"required": ["data"], "properties": {"error": false}},
        "else": {"required": ["error"], "properties": {"data": false}}
    });
    let emits = &module.manifest.context.emits;
    if let Some(Value::Object(properties)) = schema.get_mut("properties").filter(|_| !emits.is_empty()) {
        let kinds: Map<String, Value> = emits.iter().map(|emit| (emit.kind.clone(), json!({}))).collect();
        let emitted = json!({"type": "object", "properties": kinds, "additionalProperties": false});
        properties.insert(String::from(context::EMITTED_KEY), emitted);
    }
    if let (Value::Object(schema), Value::Object(document)) = (&mut schema, contract.document()) {
        for key in ["$defs", "definitions"] {
            if let Some(definitions) = document.get(key) {
                schema.insert(String::from(key), definitions.clone());
            }
        }
    }
    let from = contract.pointer(Section::Data).unwrap_or("/data");
    move_references(&mut schema, &format!("#{from}"), "#/properties/data");
    schema
}

/// References into the section of `data` follow it to its new place.
fn move_references(schema: &mut Value, from: &str, to: &str) {
    match schema {
        Value::Object(map) => {
            move_reference(map, from, to);
            for value in map.values_mut() {
                move_references(value, from, to);
            }
        }
        Value::Array(items) => {
            for item in items {
                move_references(item, from, to);
            }
        }
        _ => {}
    }
}

fn move_reference(map: &mut Map<String, Value>, from: &str, to: &str) {
    let Some(Value::String(reference)) = map.get_mut("$ref") else {
        return;
    };
    let Some(rest) = reference.strip_prefix(from) else {
        return;
    };
    if rest.is_empty() || rest.starts_with('/') {
        *reference = format!("{to}{rest}");
    }
}
