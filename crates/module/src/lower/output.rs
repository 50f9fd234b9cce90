//! The schema of a complete answer: the envelope around the module's own schema of `data`, self-contained,
//! for back-ends with schema-constrained decoding.

use serde_json::{Map, Value, json};

use crate::context;
use crate::limits;
use crate::module::Module;
use crate::schema::{Contract, Section, extract, remove_unused_definitions};

pub fn output_schema(module: &Module) -> Value {
    let mut schema = around(&module.contract);
    let emits = &module.manifest.context.emits;
    if let Some(Value::Object(properties)) = schema.get_mut("properties").filter(|_| !emits.is_empty()) {
        let kinds: Map<String, Value> = emits.iter().map(|emit| (emit.kind.clone(), json!({}))).collect();
        let emitted = json!({"type": "object", "properties": kinds, "additionalProperties": false});
        properties.insert(String::from(context::EMITTED_KEY), emitted);
    }
    schema
}

/// The schema of `data` alone, with the definitions that it refers to.
pub(crate) fn data_schema(module: &Module) -> Option<Value> {
    let contract = &module.contract;
    let mut schema = contract.schema(Section::Data)?.clone();
    extract(&mut schema, contract, Section::Data, "#");
    remove_unused_definitions(&mut schema);
    Some(schema)
}

/// The envelope around the data of a contract.
pub(super) fn around(contract: &Contract) -> Value {
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
    extract(&mut schema, contract, Section::Data, "#/properties/data");
    schema
}
