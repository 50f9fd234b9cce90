//! The JSON Schemas that the OpenAPI document is put together from. They say what clients can rely on;
//! the exact schemas of modules are served with the modules.

use serde_json::{Map, Value, json};

pub(crate) fn text() -> Value {
    json!({"type": "string"})
}

/// A value of a named JSON type, with what it means.
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
        "description": "The module's input; or a wrapper with `input`, whose other keys all begin with an underscore.",
        "anyOf": [{"$ref": "#/components/schemas/Execute"}, {"type": "object"}]
    })
}

pub(super) fn components() -> Value {
    json!({
        "Meta": {
            "type": "object",
            "required": ["confidence", "risk", "explain"],
            "properties": {
                "confidence": {"type": "number", "minimum": 0, "maximum": 1},
                "risk": {"anyOf": [{"enum": ["none", "low", "medium", "high"]}, {"type": "object"}]},
                "explain": {"type": "string", "maxLength": 280},
                "trace_id": {"type": "string"},
                "model": {"type": "string"},
                "latency_ms": {"type": "number", "minimum": 0}
            }
        },
        "Success": {
            "type": "object",
            "required": ["ok", "meta", "data"],
            "properties": {
                "ok": {"const": true},
                "meta": {"$ref": "#/components/schemas/Meta"},
                "data": {"type": "object", "required": ["rationale"], "properties": {"rationale": {"type": "string"}}},
                "_warnings": {"$ref": "#/components/schemas/Warnings"},
                "_usage": {"type": "object"}
            },
            "not": {"required": ["error"]}
        },
        "Failure": {
            "type": "object",
            "required": ["ok", "meta", "error"],
            "properties": {
                "ok": {"const": false},
                "meta": {"$ref": "#/components/schemas/Meta"},
                "error": {
                    "type": "object",
                    "required": ["code", "message"],
                    "properties": {
                        "code": {"type": "string", "pattern": "^E[1-9][0-9]{3}$"},
                        "message": {"type": "string"},
                        "recoverable": {"type": "boolean"},
                        "suggestion": {"type": "string"},
                        "details": {"type": "object"}
                    }
                },
                "partial_data": {"type": "object"},
                "_warnings": {"$ref": "#/components/schemas/Warnings"}
            },
            "not": {"required": ["data"]}
        },
        "Warnings": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["code", "message"],
                "properties": {"code": {"type": "string", "pattern": "^W[0-9]{4}$"}, "message": {"type": "string"}}
            }
        },
        "Execute": {
            "type": "object",
            "required": ["input"],
            "properties": {
                "input": {},
                "_options": {"$ref": "#/components/schemas/Options"},
                "_recovery": {"$ref": "#/components/schemas/Recovery"}
            },
            "patternProperties": {"^_": {}},
            "additionalProperties": false
        },
        "Options": {
            "type": "object",
            "properties": {
                "response_mode": {"enum": ["sync", "streaming"]},
                "chunk_type": {"enum": ["delta", "snapshot"]},
                "progress": {"type": "boolean"},
                "on_disconnect": {"enum": ["keep", "cancel"]},
                "strict": {"type": "boolean", "description": "A mismatch is an error instead of a warning."}
            }
        },
        "Recovery": {
            "type": "object",
            "required": ["session_id"],
            "properties": {
                "session_id": {"type": "string"},
                "last_seq": {"type": "integer", "minimum": 0},
                "last_checkpoint": {"$ref": "#/components/schemas/Checkpoint"}
            }
        },
        "Checkpoint": {
            "type": "object",
            "required": ["offset", "hash"],
            "properties": {"offset": {"type": "integer", "minimum": 0}, "hash": {"type": "string"}}
        }
    })
}
