//! Chunks as JSON: the hand-written checks agree with an equivalent schema, and chunks round-trip.

use module::Code;
use module::envelope::{Envelope, EnvelopeBody, ErrorBody, Meta, Risk};
use module::stream::{Checkpoint, Chunk, Progress, Recovery, check_chunk};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn schema() -> Value {
    let text = json!({"type": "string"});
    let count = json!({"type": "integer", "minimum": 0});
    let seq = json!({"type": "integer", "minimum": 1});
    let closed = |required: Value, properties: Value| json!({"type": "object", "required": required, "properties": properties, "additionalProperties": false});
    let checkpoint = closed(
        json!([]),
        json!({"offset": count, "hash": {"type": "string", "pattern": "^[0-9a-f]{6}$"}}),
    );
    let meta = |required: Value, confidence: Value| {
        json!({"type": "object", "required": required, "properties": {
            "confidence": confidence,
            "risk": {"enum": ["none", "low", "medium", "high"]},
            "explain": {"type": "string", "maxLength": 280}
        }})
    };
    let confidence = json!({"type": "number", "minimum": 0, "maximum": 1});
    let mut complete = meta(json!(["confidence", "risk", "explain"]), confidence.clone());
    complete["properties"]["processing_time_ms"] = count.clone();
    complete["properties"]["model"] = text.clone();
    let opening = meta(
        json!(["risk", "explain"]),
        json!({"anyOf": [confidence, {"type": "null"}]}),
    );
    json!({"$schema": "http://json-schema.org/draft-07/schema#", "oneOf": [
        closed(json!(["ok", "streaming", "session_id", "meta"]), json!({
            "ok": {"const": true}, "streaming": {"const": true}, "session_id": text,
            "resumed": {"type": "boolean"}, "resume_from_seq": seq, "meta": opening})),
        closed(json!(["chunk"]), json!({"chunk": closed(json!(["seq", "type", "delta"]), json!({
            "seq": seq, "type": {"const": "delta"}, "field": text, "delta": text, "checkpoint": checkpoint}))})),
        closed(json!(["chunk"]), json!({"chunk": closed(json!(["seq", "type", "data"]), json!({
            "seq": seq, "type": {"const": "snapshot"}, "field": text, "data": true}))})),
        closed(json!(["progress"]), json!({"progress": closed(json!(["percent"]), json!({
            "percent": {"type": "integer", "minimum": 0, "maximum": 100}, "stage": text, "message": text}))})),
        closed(json!(["final", "meta", "data"]), json!({
            "final": {"const": true}, "meta": complete, "data": {"type": "object"},
            "usage": {"type": "object", "properties": {
                "input_tokens": count, "output_tokens": count, "total_tokens": count}}})),
        closed(json!(["ok", "error"]), json!({
            "ok": {"const": false}, "streaming": {"const": true}, "session_id": text,
            "partial_data": {"type": "object"},
            "error": closed(json!(["code", "message"]), json!({
                "code": {"type": "string", "pattern": "^E[1-4][0-9]{3}$"}, "message": text,
                "recoverable": {"type": "boolean"}, "details": {"type": "object"},
                "recovery": closed(json!([]), json!({
                    "last_seq": seq, "last_checkpoint": checkpoint,
                    "retry_after_ms": count, "max_retries": count}))}))}))
    ]})
}

fn good() -> Vec<Value> {
    vec![
        json!({"ok": true, "streaming": true, "session_id": "s", "resumed": true, "resume_from_seq": 2,
            "meta": {"confidence": null, "risk": "low", "explain": "begin", "trace_id": "t"}}),
        json!({"chunk": {"seq": 1, "type": "delta", "field": "data.a", "delta": "x",
            "checkpoint": {"offset": 1, "hash": "2d7116"}}}),
        json!({"chunk": {"seq": 2, "type": "snapshot", "field": "data", "data": {"a": [1]}}}),
        json!({"progress": {"percent": 45, "stage": "s", "message": "m"}}),
        json!({"final": true, "meta": {"confidence": 1, "risk": "none", "explain": "done", "model": "m",
            "processing_time_ms": 3}, "data": {}, "usage": {"input_tokens": 1, "total_tokens": 2}}),
        json!({"ok": false, "streaming": true, "session_id": "s", "partial_data": {}, "error": {
            "code": "E2010", "message": "m", "recoverable": true, "details": {},
            "recovery": {"last_seq": 1, "last_checkpoint": {"offset": 0, "hash": "abcdef"},
                "retry_after_ms": 0, "max_retries": 0}}}),
    ]
}

/// Every object inside a value, by pointer.
fn objects(value: &Value, at: &str, found: &mut Vec<String>) {
    if let Value::Object(map) = value {
        found.push(String::from(at));
        for (key, value) in map {
            objects(value, &format!("{at}/{key}"), found);
        }
    }
}

fn oddity() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2i64..103).prop_map(Value::from),
        prop_oneof![Just(0.5), Just(1.0), Just(2.0), Just(-0.1), Just(1.1)].prop_map(Value::from),
        prop_oneof![
            Just("delta"),
            Just("snapshot"),
            Just("high"),
            Just("0a1b2c"),
            Just("ABCDEF"),
            Just("x")
        ]
        .prop_map(Value::from),
        Just(Value::from("é".repeat(280))),
        Just(Value::from("é".repeat(281))),
        Just(json!([])),
        Just(json!({})),
    ]
}

fn mutated() -> impl Strategy<Value = Value> {
    let step = (
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        0..3u8,
        oddity(),
    );
    (prop::sample::select(good()), prop::collection::vec(step, 0..3)).prop_map(|(mut value, steps)| {
        for (object, key, action, oddity) in steps {
            let mut places = Vec::new();
            objects(&value, "", &mut places);
            let place = value.pointer_mut(object.get(&places).as_str());
            let Some(place) = place.and_then(Value::as_object_mut) else {
                continue;
            };
            let keys: Vec<String> = place.keys().cloned().collect();
            if action == 0 || keys.is_empty() {
                let names = [
                    "ok", "meta", "error", "final", "chunk", "usage", "other", "field", "data",
                ];
                place.insert(String::from(*key.get(&names)), oddity);
            } else if action == 1 {
                place.remove(key.get(&keys));
            } else {
                place.insert(key.get(&keys).clone(), oddity);
            }
        }
        value
    })
}

/// Where the checks accept more than the schema on purpose: legacy codes and unknown counts.
fn is_wider(value: &Value) -> bool {
    let code = value.pointer("/error/code").and_then(Value::as_str);
    let usage = value.get("usage").and_then(Value::as_object);
    code.is_some_and(|code| !code.starts_with('E'))
        || usage.is_some_and(|usage| usage.values().any(Value::is_null))
}

#[test]
fn checks_agree_with_the_schema() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for value in good() {
        assert_eq!(check_chunk(&value), [], "{value}");
        assert!(validator.is_valid(&value), "{value}");
    }
    proptest!(crate::property::cases(2_000), |(value in mutated())| {
        if !is_wider(&value) {
            let found = check_chunk(&value);
            prop_assert_eq!(found.is_empty(), validator.is_valid(&value), "{} {:?}", value, found);
        }
    });
}

#[track_caller]
fn check_codes(value: &Value, expected: &[(Code, &str)]) {
    let found: Vec<(Code, String)> = check_chunk(value)
        .into_iter()
        .map(|violation| (violation.code, violation.pointer))
        .collect();
    let expected: Vec<(Code, String)> = expected
        .iter()
        .map(|(code, pointer)| (*code, String::from(*pointer)))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn each_violation_has_code_and_pointer() {
    let meta = json!({"risk": "low", "explain": ""});
    check_codes(
        &json!({"ok": true, "streaming": true, "meta": meta}),
        &[(Code::E1002, "/session_id")],
    );
    check_codes(
        &json!({"chunk": {"seq": 0, "type": "delta", "delta": 1}}),
        &[(Code::E1004, "/chunk/seq"), (Code::E1003, "/chunk/delta")],
    );
    check_codes(
        &json!({"progress": {"percent": 1}, "version": "2.5"}),
        &[(Code::E1001, "/version")],
    );
    check_codes(&json!({}), &[(Code::E1002, "")]);
    check_codes(&json!([]), &[(Code::E1003, "")]);
    // Annotations of the transport are not part of the chunk.
    check_codes(
        &json!({"ok": true, "streaming": true, "session_id": "s", "meta": meta, "_warnings": []}),
        &[],
    );
    // Module codes and legacy codes are the same as in envelopes.
    for code in ["E5001", "PARSE_ERROR", "UNSUPPORTED_LANGUAGE"] {
        check_codes(&json!({"ok": false, "error": {"code": code, "message": ""}}), &[]);
    }
}

#[test]
fn chunks_round_trip() {
    let object = |value: Value| value.as_object().cloned().unwrap();
    let checkpoint = Checkpoint {
        offset: 1,
        hash: String::from("2d7116"),
    };
    let error = ErrorBody::new(Code::E2010, "cut").detail("at", 3);
    let failure = Envelope {
        meta: Meta::new(0.0, Risk::High, "cut"),
        body: EnvelopeBody::Failure {
            error: Box::new(error),
            partial_data: Some(object(json!({"a": "x"}))),
        },
        annotations: object(json!({"_warnings": [1]})),
    };
    let recovery = Recovery::after(1, Some(checkpoint.clone()));
    let chunks = [
        Chunk::Meta {
            session_id: String::from("s"),
            resume_from_seq: Some(3),
            meta: object(json!({"confidence": null, "risk": "low", "explain": ""})),
            annotations: object(json!({"_warnings": []})),
        },
        Chunk::Delta {
            seq: 1,
            field: String::from("data.a"),
            delta: String::from("x\n\u{1F600}"),
            checkpoint: Some(checkpoint),
        },
        Chunk::Snapshot {
            seq: 2,
            field: String::from("data"),
            data: json!({"a": null}),
        },
        Chunk::Progress(Progress {
            percent: 7,
            stage: None,
            message: Some(String::from("m")),
        }),
        Chunk::Final {
            meta: object(json!({"confidence": 0.5, "risk": "low", "explain": ""})),
            data: Map::new(),
            usage: Some(json!({"input_tokens": null})),
            annotations: Map::new(),
        },
        Chunk::ending("s", failure, None, Some(&recovery)),
    ];
    for chunk in chunks {
        let written = serde_json::to_string(&chunk).unwrap();
        assert_eq!(written, chunk.clone().into_value().to_string());
        let value: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(Chunk::from_value(value).unwrap(), chunk);
    }
}
