use proptest::prelude::*;
use serde_json::{Value, json};

use crate::detokenizer::{Detokenized, Detokenizer};
use crate::json_closer::JsonPosition;
use crate::schema_narrowing::narrow;
use crate::weights::{WeightsError, check_weights};

/// Feeds the text in pieces; returns the emitted text and whether a stop sequence was found.
fn replay(text: &[u8], cuts: &[usize], stops: &[&str]) -> (String, bool) {
    let mut reply = Detokenizer::new(stops.iter().map(|stop| String::from(*stop)).collect());
    let mut seen = String::new();
    let mut start = 0;
    let mut borders: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    borders.push(text.len());
    borders.sort_unstable();
    for border in borders {
        match reply.push(&text[start..border]) {
            Detokenized::Text(text) => seen.push_str(&text),
            Detokenized::Stopped(text) => {
                seen.push_str(&text);
                return (seen, true);
            }
        }
        start = border;
    }
    seen.push_str(&reply.finish());
    (seen, false)
}

proptest! {
    #[test]
    fn text_is_independent_of_token_boundaries(text in "[a-zäß中🦀\n ]{0,40}", cuts in prop::collection::vec(0_usize..200, 0..12)) {
        let (seen, stopped) = replay(text.as_bytes(), &cuts, &[]);
        prop_assert_eq!(seen, text);
        prop_assert!(!stopped);
    }

    #[test]
    fn stop_sequence_is_never_emitted(text in "[abcXY]{0,40}", cuts in prop::collection::vec(0_usize..200, 0..12)) {
        let (seen, stopped) = replay(text.as_bytes(), &cuts, &["XYX", "abca"]);
        let first = ["XYX", "abca"].iter().filter_map(|stop| text.find(stop)).min();
        prop_assert_eq!(stopped, first.is_some());
        if stopped {
            // A stop sequence that ends earlier may start later in the text and still be found first.
            prop_assert!(text.starts_with(&seen));
            prop_assert!(!seen.contains("XYX") && !seen.contains("abca"));
        } else {
            prop_assert_eq!(seen, text);
        }
    }

    #[test]
    fn invalid_utf8_is_replaced(bytes in prop::collection::vec(any::<u8>(), 0..40), cuts in prop::collection::vec(0_usize..200, 0..12)) {
        let (seen, _) = replay(&bytes, &cuts, &[]);
        prop_assert_eq!(seen, String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn narrowed_schema_implies_original(schema in schemas(), document in documents()) {
        let narrowed = narrow(&schema).expect("not deep");
        let fits = |schema: &Value| jsonschema::draft7::is_valid(schema, &document);
        prop_assert!(!fits(&narrowed) || fits(&schema), "{narrowed} takes {document}, {schema} does not");
    }
}

fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "boolean"})),
        Just(json!({"type": "integer", "minimum": 1})),
        Just(json!({"enum": ["a", "b"]})),
        Just(json!({"$ref": "#/$defs/x"})),
        Just(json!(true)),
    ];
    let node = leaf.prop_recursive(3, 24, 4, |inner| {
        let members = prop::collection::btree_map("[abk]", inner.clone(), 0..3);
        let required = prop::collection::btree_set("[abk]", 0..3);
        prop_oneof![
            (members.clone(), required.clone()).prop_map(|(members, required)| {
                json!({"type": "object", "properties": members, "required": required})
            }),
            (members, required, any::<bool>()).prop_map(|(mut members, mut required, wanted)| {
                members.insert(String::from("k"), json!({"type": "boolean"}));
                let then: Vec<_> = required.iter().cloned().collect();
                required.insert(String::from("k"));
                json!({
                    "type": "object",
                    "properties": members,
                    "required": required,
                    "if": {"properties": {"k": {"const": wanted}}},
                    "then": {"required": then},
                    "else": {"properties": {"a": false}}
                })
            }),
            inner
                .clone()
                .prop_map(|inner| json!({"type": "array", "items": inner})),
            prop::collection::vec(inner.clone(), 1..3).prop_map(|inner| json!({"anyOf": inner})),
            prop::collection::vec(inner, 1..3).prop_map(|inner| json!({"allOf": inner})),
        ]
    });
    node.prop_map(|mut node| {
        if let Value::Object(map) = &mut node {
            map.insert(
                String::from("$defs"),
                json!({"x": {"properties": {"a": {"type": "integer"}}}}),
            );
        } else {
            node = json!({});
        }
        node
    })
}

fn documents() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        (0_i64..4).prop_map(Value::from),
        "[ab]".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::btree_map("[abkz]", inner.clone(), 0..4).prop_map(|map| json!(map)),
            prop::collection::vec(inner, 0..3).prop_map(Value::from),
        ]
    })
}

#[test]
fn boolean_condition_becomes_any_of() {
    let schema = json!({
        "type": "object",
        "properties": {"ok": {"type": "boolean"}, "data": {"type": "object"}, "error": {"type": "string"}},
        "required": ["ok"],
        "if": {"properties": {"ok": {"const": true}}},
        "then": {"required": ["data"], "properties": {"error": false}},
        "else": {"required": ["error"], "properties": {"data": false}}
    });
    let expected = json!({"anyOf": [
        {
            "type": "object",
            "properties": {"ok": {"const": true}, "data": {"type": "object"}},
            "required": ["ok", "data"],
            "additionalProperties": false
        },
        {
            "type": "object",
            "properties": {"ok": {"const": false}, "error": {"type": "string"}},
            "required": ["ok", "error"],
            "additionalProperties": false
        }
    ]});
    assert_eq!(narrow(&schema), Some(expected));
}

#[test]
fn too_deep_schema_is_not_narrowed() {
    let mut schema = json!({});
    for _ in 0..1000 {
        schema = json!({"items": schema});
    }
    assert_eq!(narrow(&schema), None);
}

#[test]
fn closing_bytes_match_string_state() {
    let after = |text: &str| {
        let mut place = JsonPosition::default();
        place.advance(text.as_bytes());
        place.closing_bytes()
    };
    assert_eq!(after(r#"{"a": "#), b"}],");
    assert_eq!(after(r#"{"a": "x"#), b"\"");
    assert_eq!(after(r#"{"a": "x\"#), b"\\n");
    assert_eq!(after(r#"{"a": "x\""#), b"\"");
    assert_eq!(after(r#"{"a": "x\\""#), b"}],");
}

#[test]
fn invalid_weights_are_refused_before_native_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.gguf");
    assert!(matches!(
        check_weights(&path),
        Err(WeightsError::Unreadable { .. })
    ));
    for bad in [&b""[..], b"GGU", b"GGUF", b"<html> not found"] {
        std::fs::write(&path, bad).expect("written");
        assert!(
            matches!(check_weights(&path), Err(WeightsError::NotGguf { .. })),
            "{bad:?}"
        );
    }
    std::fs::write(&path, b"GGUF\x01\0\0\0").expect("written");
    assert!(matches!(
        check_weights(&path),
        Err(WeightsError::Version { version: 1, .. })
    ));
    std::fs::write(&path, b"GGUF\x03\0\0\0").expect("written");
    assert!(check_weights(&path).is_ok());
}
