//! Replies of a given size and kind, and their module. The schema describes every field, so that validation
//! is realistic.

use module::{FileMap, Module, load};
use serde_json::{Value, json};

/// The kind of value that makes up most of a reply.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Text,
    Numbers,
}

pub(crate) const SIZES: [usize; 3] = [1 << 10, 16 << 10, 256 << 10];

pub(crate) fn module() -> Module {
    let manifest = "name: sample\nversion: 1.0.0\nresponsibility: be measured\ntier: decision\n";
    let files: FileMap = [
        ("module.yaml", manifest.as_bytes().to_vec()),
        ("prompt.md", Vec::new()),
        ("schema.json", schema().to_string().into_bytes()),
    ]
    .into_iter()
    .collect();
    load(&files)
        .module
        .unwrap_or_else(|| unreachable!("the sample module loads"))
}

fn schema() -> Value {
    json!({
        "meta": {
            "type": "object",
            "required": ["confidence", "risk", "explain"],
            "properties": {
                "confidence": {"type": "number", "minimum": 0, "maximum": 1},
                "risk": {"type": "string", "enum": ["none", "low", "medium", "high"]},
                "explain": {"type": "string", "maxLength": 280}
            }
        },
        "data": {
            "type": "object",
            "required": ["rationale", "changes"],
            "properties": {
                "rationale": {"type": "string"},
                "changes": {"type": "array", "items": {"$ref": "#/$defs/change"}},
                "points": {"type": "array", "items": {
                    "type": "array", "items": {"type": "number"}, "minItems": 4, "maxItems": 4
                }}
            }
        },
        "$defs": {"change": {
            "type": "object",
            "required": ["type", "text", "risk"],
            "properties": {
                "type": {"oneOf": [
                    {"type": "string", "enum": ["remove", "simplify"]},
                    {"type": "object", "required": ["custom", "reason"], "properties": {
                        "custom": {"type": "string", "maxLength": 32}, "reason": {"type": "string"}
                    }}
                ]},
                "text": {"type": "string"},
                "risk": {"type": "string", "enum": ["none", "low", "medium", "high"]}
            }
        }}
    })
}

/// A valid reply of about `bytes` bytes.
pub(crate) fn reply(kind: Kind, bytes: usize) -> Vec<u8> {
    let mut data = json!({"rationale": "Each step keeps what the caller can see.", "changes": []});
    let step = match kind {
        Kind::Text => 400,
        Kind::Numbers => 40,
    };
    for index in 0..(bytes / step).max(1) {
        match kind {
            Kind::Text => {
                let text = "The loop over the \"items\" becomes an iterator;\n    nothing outside sees it. "
                    .repeat(4);
                let change = json!({"type": "simplify", "text": text, "risk": "low"});
                push(&mut data["changes"], change);
            }
            Kind::Numbers => {
                let x = index as f64;
                push(
                    &mut data["points"],
                    json!([x * 0.37, x * 1.25 + 0.125, index, x / 7.0]),
                );
            }
        }
    }
    let meta = json!({"confidence": 0.93, "risk": "low", "explain": "Simplified without a visible change."});
    json!({"ok": true, "meta": meta, "data": data})
        .to_string()
        .into_bytes()
}

fn push(list: &mut Value, item: Value) {
    match list {
        Value::Array(items) => items.push(item),
        other => *other = Value::Array(vec![item]),
    }
}
