//! Sample modules for the envelope tests.

use std::sync::LazyLock;

use module::envelope::{CheckOptions, Profile, check_reply, check_structure};
use module::{FileMap, Module, load};
use serde_json::{Value, json};

/// A module with this manifest (name, version and responsibility are added) and schema.
pub(crate) fn module(manifest: &str, schema: &Value) -> Module {
    let manifest = format!(
        "name: sample\nversion: 1.0.0\nresponsibility: to be checked\nexcludes: [nothing]\n{manifest}"
    );
    let files: FileMap = [
        ("module.yaml", manifest.into_bytes()),
        ("prompt.md", b"Answer with an envelope: meta and data.".to_vec()),
        ("schema.json", schema.to_string().into_bytes()),
    ]
    .into_iter()
    .collect();
    load(&files).module.unwrap()
}

/// A schema with `$defs`, an extensible enum, changes with risks, and room for unknown fields.
pub(crate) fn schema() -> Value {
    json!({
        "$schema": "https://example.invalid/schema/v2.2.json",
        "meta": {
            "type": "object",
            "required": ["confidence", "risk", "explain"],
            "properties": {"confidence": {"type": "number", "minimum": 0, "maximum": 1}}
        },
        "input": {
            "type": "object",
            "required": ["code"],
            "properties": {"code": {"type": "string", "minLength": 1}, "depth": {"type": "integer"}}
        },
        "data": {
            "type": "object",
            "required": ["rationale"],
            "properties": {
                "rationale": {"type": "string"},
                "score": {"type": "integer"},
                "kind": {"type": "string", "enum": ["a", "b"]},
                "changes": {"type": "array", "items": {"$ref": "#/$defs/change"}},
                "extensions": {"$ref": "#/$defs/extensions"}
            }
        },
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "string"}, "message": {"type": "string", "minLength": 3}}
        },
        "$defs": {
            "change": {
                "type": "object",
                "properties": {
                    "risk": {"type": "string"},
                    "type": {"oneOf": [
                        {"type": "string", "enum": ["remove", "simplify"]},
                        {"$ref": "#/$defs/custom"}
                    ]}
                }
            },
            "custom": {
                "type": "object",
                "required": ["custom", "reason"],
                "properties": {"custom": {"type": "string"}, "reason": {"type": "string"}}
            },
            "extensions": {"type": "object", "properties": {"insights": {"type": "array", "maxItems": 5}}}
        }
    })
}

static DECISION: LazyLock<Module> = LazyLock::new(|| {
    module(
        "tier: decision\ncontext: {emits: [{type: kept}, {type: seen}]}\n",
        &schema(),
    )
});
static EXEC: LazyLock<Module> = LazyLock::new(|| module("tier: exec\n", &schema()));
static OLD: LazyLock<Module> = LazyLock::new(|| module("policies: {network: deny}\n", &schema()));

pub(crate) fn decision() -> &'static Module {
    &DECISION
}

pub(crate) fn exec() -> &'static Module {
    &EXEC
}

/// A v2.1 module, whose answers are wrapped.
pub(crate) fn old() -> &'static Module {
    &OLD
}

/// The result of checking a reply, which is asserted to be a valid envelope.
pub(crate) fn check(module: &Module, reply: impl AsRef<[u8]>) -> Value {
    let outcome = check_reply(module, reply.as_ref(), &CheckOptions::default());
    let value = outcome.envelope.into_value();
    let found = check_structure(&value, Profile::Cognitive);
    assert!(found.is_empty(), "{value:#}\n{found:#?}");
    if value["ok"] == false {
        assert!(value["error"]["recoverable"].is_boolean(), "{value:#}");
        assert!(
            value["error"]["suggestion"]
                .as_str()
                .is_some_and(|text| !text.is_empty()),
            "{value:#}"
        );
    }
    value
}

/// A valid envelope with changes applied to it: `("/meta/risk", json!("low"))`; null removes.
pub(crate) fn reply(changes: &[(&str, Value)]) -> String {
    let mut value = json!({
        "ok": true,
        "meta": {"confidence": 0.95, "risk": "low", "explain": "fine"},
        "data": {"rationale": "because"}
    });
    for (path, change) in changes {
        let (parent, key) = path.rsplit_once('/').unwrap();
        let parent = value.pointer_mut(parent).and_then(Value::as_object_mut).unwrap();
        parent.shift_remove(key);
        if !change.is_null() {
            parent.insert(String::from(key), change.clone());
        }
    }
    value.to_string()
}

/// The code of a failed answer, or `ok`.
pub(crate) fn code(value: &Value) -> &str {
    match value["ok"].as_bool() {
        Some(true) => "ok",
        _ => value["error"]["code"].as_str().unwrap_or_default(),
    }
}

/// The actions recorded in `meta.repairs`, as `pointer action`.
pub(crate) fn repairs(value: &Value) -> Vec<String> {
    let entries = value["meta"]["repairs"].as_array().cloned().unwrap_or_default();
    let line = |entry: &Value| {
        let text = |key: &str| entry[key].as_str().unwrap_or_default();
        format!("{} {}", text("pointer"), text("action"))
    };
    entries.iter().map(line).collect()
}

/// An overflow container with `count` insights.
pub(crate) fn insights(count: usize) -> Value {
    json!({"insights": vec![json!({"text": "t", "suggested_mapping": "data.kind"}); count]})
}
