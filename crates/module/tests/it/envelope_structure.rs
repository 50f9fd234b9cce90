//! The hand-written structure checks agree with an equivalent schema on generated values.

use module::envelope::{Profile, check_structure};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn schema() -> Value {
    let text = json!({"type": "string"});
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "required": ["ok", "meta"],
        "properties": {"ok": {"type": "boolean"}, "meta": {
            "type": "object",
            "required": ["confidence", "risk", "explain"],
            "properties": {
                "confidence": {"type": "number", "minimum": 0, "maximum": 1},
                "risk": {"enum": ["none", "low", "medium", "high"]},
                "explain": {"type": "string", "maxLength": 280},
                "trace_id": text, "model": text,
                "latency_ms": {"type": "number", "minimum": 0}
            }
        }},
        "if": {"properties": {"ok": {"const": true}}},
        "then": {
            "required": ["data"],
            "additionalProperties": false,
            "properties": {"ok": true, "meta": true, "data": {
                "type": "object",
                "required": ["rationale"],
                "properties": {"rationale": text, "extensions": {
                    "type": "object",
                    "additionalProperties": false,
                    "properties": {"insights": {"type": "array", "maxItems": 20, "items": {
                        "type": "object",
                        "required": ["text", "suggested_mapping"],
                        "additionalProperties": false,
                        "properties": {"text": text, "suggested_mapping": text, "evidence": text}
                    }}}
                }}
            }}
        },
        "else": {
            "required": ["error"],
            "additionalProperties": false,
            "properties": {"ok": true, "meta": true, "partial_data": {"type": "object"}, "error": {
                "type": "object",
                "required": ["code", "message"],
                "properties": {"code": text, "message": text, "suggestion": text,
                    "recoverable": {"type": "boolean"}}
            }}
        }
    })
}

fn oddity() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!(true)),
        Just(json!(-1)),
        Just(json!(0.5)),
        Just(json!(1)),
        Just(json!(1.5)),
        Just(json!("low")),
        Just(json!("x".repeat(281))),
        Just(json!("\u{1F600}".repeat(280))),
        Just(json!([])),
        Just(json!({})),
    ]
}

/// A value built around a valid envelope, with some of its parts missing, foreign or of another type.
fn near_envelope() -> impl Strategy<Value = Value> {
    let paths = [
        "/ok",
        "/meta",
        "/data",
        "/error",
        "/partial_data",
        "/version",
        "/extra",
        "/meta/confidence",
        "/meta/risk",
        "/meta/explain",
        "/meta/trace_id",
        "/meta/model",
        "/meta/latency_ms",
        "/meta/extra",
        "/data/rationale",
        "/data/extensions",
        "/data/extensions/insights",
        "/data/extensions/other",
        "/data/extensions/insights/0",
        "/data/extensions/insights/0/text",
        "/data/extensions/insights/0/suggested_mapping",
        "/data/extensions/insights/0/evidence",
        "/data/extensions/insights/0/other",
        "/error/code",
        "/error/message",
        "/error/recoverable",
        "/error/suggestion",
        "/error/details",
    ];
    let edit = (prop::sample::select(paths.to_vec()), prop::option::of(oddity()));
    let base = prop_oneof![
        (0usize..23).prop_map(|count| {
            let insight = json!({"text": "t", "suggested_mapping": "m"});
            json!({"ok": true, "meta": {"confidence": 0.5, "risk": "low", "explain": "e"},
                "data": {"rationale": "r", "extensions": {"insights": vec![insight; count]}}})
        }),
        Just(
            json!({"ok": false, "meta": {"confidence": 0, "risk": "high", "explain": ""},
            "error": {"code": "E1001", "message": "m"}, "partial_data": {}})
        ),
    ];
    (base, prop::collection::vec(edit, 0..3)).prop_map(|(mut value, edits)| {
        for (path, replacement) in edits {
            apply(&mut value, path, replacement);
        }
        value
    })
}

fn apply(value: &mut Value, path: &str, replacement: Option<Value>) {
    let (parent, key) = path.rsplit_once('/').unwrap();
    match value.pointer_mut(parent) {
        Some(Value::Object(map)) => {
            map.shift_remove(key);
            if let Some(replacement) = replacement {
                map.insert(String::from(key), replacement);
            }
        }
        Some(Value::Array(items)) if !items.is_empty() => {
            items[0] = replacement.unwrap_or_default();
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(crate::property::cases(2_000))]

    #[test]
    fn agrees_with_the_schema(value in near_envelope()) {
        let validator = jsonschema::draft7::new(&schema()).unwrap();
        let found = check_structure(&value, Profile::Cognitive);
        prop_assert_eq!(validator.is_valid(&value), found.is_empty(), "{}: {:?}", value, found);
    }
}

fn minimal() -> Map<String, Value> {
    let value = json!({"ok": true, "meta": {"confidence": 1, "risk": "none", "explain": ""}, "data": {"rationale": ""}});
    value.as_object().unwrap().clone()
}

fn pointers(value: Map<String, Value>, profile: Profile) -> Vec<String> {
    let found = check_structure(&Value::Object(value), profile);
    found.into_iter().map(|violation| violation.pointer).collect()
}

#[test]
fn version_decides_between_the_profiles() {
    let plain = minimal();
    let mut versioned = minimal();
    versioned.insert(String::from("version"), json!("2.2"));
    let mut other = minimal();
    other.insert(String::from("version"), json!("3"));
    assert!(pointers(plain.clone(), Profile::Cognitive).is_empty());
    assert!(pointers(versioned.clone(), Profile::Cep22).is_empty());
    assert_eq!(pointers(versioned, Profile::Cognitive), ["/version"]);
    assert_eq!(pointers(plain, Profile::Cep22), [""]);
    assert_eq!(pointers(other, Profile::Cep22), ["/version"]);
}

#[test]
fn annotations_are_not_part_of_the_envelope() {
    let mut value = minimal();
    value.insert(String::from("_warnings"), json!("anything"));
    assert!(pointers(value.clone(), Profile::Cognitive).is_empty());
    value.insert(String::from("a/b~c"), json!(1));
    assert_eq!(pointers(value, Profile::Cognitive), ["/a~1b~0c"]);
}

#[test]
fn every_violation_is_reported_at_once() {
    let value = json!({"ok": false, "meta": {"confidence": "high", "risk": "critical"}, "data": {}});
    let found = check_structure(&value, Profile::Cognitive);
    let mut seen: Vec<_> = found
        .iter()
        .map(|violation| (violation.pointer.as_str(), violation.keyword.as_ref()))
        .collect();
    seen.sort_unstable();
    let expected = [
        ("", "required"),
        ("/data", "additionalProperties"),
        ("/meta", "required"),
        ("/meta/confidence", "type"),
        ("/meta/risk", "enum"),
    ];
    assert_eq!(seen, expected);
    assert!(check_structure(&json!([]), Profile::Cognitive).len() == 1);
}
