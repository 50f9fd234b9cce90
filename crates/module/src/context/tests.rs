use serde_json::{Value, json};

use super::sanitise::sanitise;
use super::{admit, emitted};
use crate::file_map::FileMap;
use crate::module::Module;

fn module(context: &str) -> Module {
    let manifest = format!("name: m\nversion: 1.0.0\nresponsibility: r\ntier: decision\n{context}");
    let files: FileMap = [
        ("module.yaml", manifest.as_str()),
        ("prompt.md", "$INPUT"),
        (
            "schema.json",
            r##"{"input": {"properties": {"_context": {"properties": {"environment": {}}}}}, "$defs": {
                "turns": {"type": "array", "items": {"$ref": "#/$defs/turn"}},
                "turn": {"type": "object", "required": ["role"]}}}"##,
        ),
        ("state.json", r##"{"type": "object", "properties": {"n": {"$ref": "#/definitions/n"}}, "definitions": {"n": {"type": "integer"}}}"##),
    ]
    .into_iter()
    .collect();
    crate::load(&files).module.unwrap()
}

const DECLARED: &str = "context:
  accepts:
    - {type: conversation_history, max_turns: 2, schema: './schema.json#/$defs/turns'}
    - {type: user_profile, fields: [locale]}
    - {type: session_state, required: true, schema: ./state.json}
  emits:
    - {type: session_state, schema: ./state.json}
";

fn given(context: &Value) -> serde_json::Map<String, Value> {
    json!({"_context": context}).as_object().unwrap().clone()
}

#[test]
fn accepts_only_declared_context_in_declared_form() {
    let module = module(DECLARED);
    let admitted = admit(
        &module,
        &given(&json!({
            "conversation_history": [{"role": "a"}, {"role": "b"}, {"role": "c"}],
            "user_profile": {"locale": "de", "income": 1},
            "session_state": {"n": 1, "api_key": "sk-1"},
            "environment": {"os": "linux"},
            "gossip": "x",
        })),
    )
    .unwrap();
    assert_eq!(
        Value::Object(admitted.context),
        json!({
            "conversation_history": [{"role": "b"}, {"role": "c"}],
            "user_profile": {"locale": "de"},
            "session_state": {"n": 1, "api_key": "[redacted]"},
            "environment": {"os": "linux"},
        })
    );
    assert_eq!(admitted.left_out, ["gossip"]);
}

#[test]
fn missing_or_invalid_context_is_refused() {
    let module = module(DECLARED);
    for (context, code, pointer) in [
        (json!({}), "E1002", "/_context/session_state"),
        (
            json!({"session_state": {"n": "one"}}),
            "E1001",
            "/_context/session_state/n",
        ),
        (
            json!({"session_state": {}, "conversation_history": [{}]}),
            "E1001",
            "/_context/conversation_history/0",
        ),
        (json!([]), "E1003", "/_context"),
    ] {
        let error = admit(&module, &given(&context)).unwrap_err();
        assert_eq!(error.code, code, "{context}");
        assert_eq!(error.details.unwrap()["pointer"], pointer, "{context}");
    }
}

#[test]
fn undeclared_context_is_left_out() {
    let admitted = admit(&module(""), &given(&json!({"user_profile": {}}))).unwrap();
    assert!(admitted.context.is_empty());
    assert_eq!(admitted.left_out, ["user_profile"]);
}

#[test]
fn emits_only_declared_valid_context() {
    let module = module(DECLARED);
    for (emitted_context, expected) in [
        (
            json!({"session_state": {"n": 2}, "gossip": 1}),
            json!({"session_state": {"n": 2}}),
        ),
        (json!({"session_state": {"n": "two"}}), json!({})),
        (json!("text"), json!({})),
    ] {
        let mut annotations = json!({"_emitted_context": emitted_context, "_note": 1})
            .as_object()
            .unwrap()
            .clone();
        assert_eq!(Value::Object(emitted(&module, &mut annotations)), expected);
        assert_eq!(Value::Object(annotations), json!({"_note": 1}));
    }
}

#[test]
fn distinguishes_secret_names_from_similar_names() {
    for secret in [
        "password",
        "db_password_old",
        "clientSecret",
        "api-key",
        "apiKey",
        "ACCESS_TOKEN",
        "key",
    ] {
        assert_eq!(sanitise(json!({secret: {"a": 1}})), json!({secret: "[redacted]"}));
    }
    for harmless in ["key_points", "token_count", "monkey", "keyboard", "author"] {
        assert_eq!(sanitise(json!({harmless: 1})), json!({harmless: 1}));
    }
    let long = "é".repeat(10_001);
    let Value::String(cut) = sanitise(json!(long)) else {
        panic!()
    };
    assert_eq!(cut.chars().count(), 10_001);
    assert!(cut.ends_with('…'));
}
