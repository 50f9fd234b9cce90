//! Schema templates for the sections that are the same in every module.

use serde_json::{Value, json};

use crate::format::Format;

/// The standard form of `meta`.
pub(crate) fn meta_schema() -> Value {
    json!({
        "type": "object",
        "required": ["confidence", "risk", "explain"],
        "properties": {
            "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
            "risk": { "type": "string", "enum": ["none", "low", "medium", "high"] },
            "explain": { "type": "string", "maxLength": 280 },
        },
    })
}

/// The standard form of `error`; v2.5 adds numeric codes, `recoverable`, `suggestion` and `details`.
pub(crate) fn error_schema(format: Format) -> Value {
    if format < Format::V2_5 {
        return json!({
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": { "type": "string" },
                "message": { "type": "string" },
            },
        });
    }
    json!({
        "type": "object",
        "required": ["code", "message"],
        "properties": {
            "code": { "type": "string", "pattern": CODE_PATTERN },
            "message": { "type": "string" },
            "recoverable": { "type": "boolean" },
            "suggestion": { "type": "string" },
            "details": { "type": "object" },
        },
    })
}

/// The form of `extensions`, which contains insights beyond the schema.
pub(crate) fn extensions_schema(max_items: u64) -> Value {
    json!({
        "type": "object",
        "properties": {
            "insights": {
                "type": "array",
                "maxItems": max_items,
                "items": {
                    "type": "object",
                    "required": ["text", "suggested_mapping"],
                    "properties": {
                        "text": { "type": "string" },
                        "suggested_mapping": { "type": "string" },
                    },
                },
            },
        },
    })
}

/// Codes of the runtime (E1 to E4) and of modules (E5 to E9).
pub(super) const CODE_PATTERN: &str = "^E[1-9][0-9]{3}$";
