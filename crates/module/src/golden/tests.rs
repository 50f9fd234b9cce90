use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Coverage, compare_answer};
use crate::file_map::FileMap;
use crate::module::Module;

fn module() -> Module {
    let manifest = "name: m\nversion: 1.0.0\nresponsibility: r\ntier: decision\n";
    let schema = json!({
        "data": {"type": "object", "required": ["rationale"], "properties": {
            "rationale": {"type": "string"},
            "issues": {"type": "array", "items": {"$ref": "#/$defs/Issue"}},
            "tree": {"$ref": "#/$defs/Tree"}
        }},
        "$defs": {
            "Issue": {"type": "object", "properties": {"type": {"type": "string"}, "line": {"type": "integer"}}},
            "Tree": {"type": "object", "properties": {"child": {"$ref": "#/$defs/Tree"}}}
        }
    });
    let files: FileMap = [
        ("module.yaml", String::from(manifest)),
        ("prompt.md", String::from("p")),
        ("schema.json", schema.to_string()),
    ]
    .into_iter()
    .collect();
    crate::load(&files).module.unwrap()
}

fn envelope() -> Value {
    json!({
        "ok": true,
        "meta": {"confidence": 0.8, "risk": "low", "explain": "e", "model": "m"},
        "data": {"rationale": "SQL is pasted", "issues": [{"type": "security", "line": 2}, {"type": "style", "line": 3}]}
    })
}

fn holds(table: &[(bool, Value)]) {
    let module = module();
    for (passes, expected) in table {
        let found = compare_answer(&module, expected, &envelope());
        assert_eq!(found.is_empty(), *passes, "{expected}: {found:#?}");
    }
}

#[test]
fn answer_must_contain_expected_values() {
    holds(&[
        (true, json!({"ok": true})),
        (false, json!({"ok": false})),
        (true, json!({"ok": true, "meta": {"confidence": 0.80}})),
        (false, json!({"ok": true, "meta": {"confidence": 0.81}})),
        (true, json!({"rationale": "SQL is pasted"})),
        (false, json!({"rationale": "other"})),
        (false, json!({"unknown": null})),
        (true, json!({"data": {"issues": [{"type": "security"}, {}]}})),
        (false, json!({"data": {"issues": [{"type": "security"}]}})),
        (true, json!({"$comment": "only a comment"})),
        (false, json!([])),
    ]);
}

#[test]
fn rule_violations_are_reported() {
    holds(&[
        (
            true,
            json!({"_validate": {"required": ["ok", "data", "issues", "meta.risk", "issues[*].line"]}}),
        ),
        (false, json!({"_validate": {"required": ["verdict"]}})),
        (
            true,
            json!({"_validate": {"confidence_min": 0.8, "confidence_max": 0.8}}),
        ),
        (false, json!({"_validate": {"confidence_min": 0.9}})),
        (false, json!({"_validate": {"confidence_max": 0.7}})),
        (true, json!({"_validate": {"rationale_min_length": 13}})),
        (false, json!({"_validate": {"rationale_min_length": 14}})),
        (
            true,
            json!({"_validate": {"contains": ["SQL", "style"], "not_contains": "looks good"}}),
        ),
        (false, json!({"_validate": {"contains": "Python"}})),
        (false, json!({"_validate": {"not_contains": ["pasted"]}})),
        (
            true,
            json!({"_validate": {"contains": {"issues[0].type": "secur"}}}),
        ),
        (
            false,
            json!({"_validate": {"contains": {"issues[1].type": "secur"}}}),
        ),
        (
            true,
            json!({"_contains": {"issues[*].type": ["style", "security"], "issues[*].line": [2]}}),
        ),
        (false, json!({"_contains": {"issues[*].type": ["speed"]}})),
        (
            true,
            json!({"_contains": {"issues[*].type": ["style"]}, "ok": true}),
        ),
        (
            false,
            json!({"_contains": {"issues[*].type": ["style"]}, "ok": false}),
        ),
        (false, json!({"_validate": {"sparkles": true}})),
    ]);
}

#[test]
fn schema_violations_are_reported() {
    holds(&[
        (
            true,
            json!({"$validate": {"ok": {"const": true}, "data": {"properties": {"issues": {"minItems": 2}}}}}),
        ),
        (
            false,
            json!({"$validate": {"data": {"properties": {"issues": {"minItems": 3}}}}}),
        ),
        (false, json!({"$validate": {"error": {"type": "object"}}})),
        (
            true,
            json!({"$validate": {"data": {"properties": {"issues": {"items": {"$ref": "#/$defs/Issue"}}}}}}),
        ),
        (
            true,
            json!({"$validate": {"ok": {"const": true}}, "$example": {"ok": true, "data": {"rationale": "other"}}}),
        ),
        (
            false,
            json!({"$example": {"ok": true, "data": {"rationale": "other"}}}),
        ),
    ]);
}

/// Validation accepts every form that a test accepts, also with a schema that allows no other fields.
#[test]
fn validation_accepts_every_form_that_a_test_accepts() {
    let manifest = "name: m\nversion: 1.0.0\nresponsibility: r\ntier: decision\n";
    let data = json!({
        "type": "object", "required": ["rationale", "label"], "additionalProperties": false,
        "properties": {"rationale": {"type": "string"}, "label": {"enum": ["a", "b"]}}
    });
    let meta = json!({"type": "object", "required": ["confidence", "risk", "explain"], "properties": {}});
    let schema = json!({"meta": meta, "data": data, "$defs": {"Label": {"enum": ["a", "b"]}}});
    let envelope = json!({
        "ok": true,
        "meta": {"confidence": 0.9, "risk": "low", "explain": "e"},
        "data": {"rationale": "r", "label": "a"}
    });
    let check_of = |expected: &Value| {
        let files: FileMap = [
            ("module.yaml", String::from(manifest)),
            ("prompt.md", String::from("p")),
            ("schema.json", schema.to_string()),
            ("tests/a.input.json", String::from("{}")),
            ("tests/a.expected.json", expected.to_string()),
        ]
        .into_iter()
        .collect();
        let loaded = crate::check::check(&files, crate::check::Strict::Standard);
        let refused = loaded.report.iter().filter(|found| found.rule.code() == "M4009");
        (
            loaded.module.unwrap(),
            refused.map(|found| found.message.clone()).collect::<Vec<_>>(),
        )
    };
    for expected in [
        json!({"ok": true, "meta": {"confidence": 0.9}, "data": {"label": "a"}}),
        json!({"data": {"label": "a"}}),
        json!({"meta": {"risk": "low"}}),
        json!({"$comment": "c", "label": "a"}),
        json!({"_note": "n", "data": {"label": "a"}}),
        json!({"$example": {"label": "a"}}),
        json!({"_validate": {"required": "label", "contains": "r"}, "label": "a"}),
        json!({"_contains": {"label": "a"}, "ok": true}),
        json!({"$validate": {"data": {"properties": {"label": {"$ref": "#/$defs/Label"}}}}}),
    ] {
        let (module, refused) = check_of(&expected);
        assert_eq!(
            compare_answer(&module, &expected, &envelope),
            vec![],
            "{expected}"
        );
        assert!(refused.is_empty(), "{expected}: {refused:?}");
    }
    // A form that no answer can fulfil is refused by both.
    for expected in [
        json!([]),
        json!({"ok": "yes"}),
        json!({"_validate": ["label"]}),
        json!({"_validate": {"required": ["a["]}}),
        json!({"_contains": {"a[": 1}}),
        json!({"$validate": {"label": {}}}),
        json!({"$validate": {"data": {"$ref": "#/$defs/None"}}}),
        json!({"data": {"label": "c"}}),
        json!({"label": "a", "other": 1}),
        json!({"_validate": {"required": "label"}, "label": "c"}),
    ] {
        let (module, refused) = check_of(&expected);
        assert!(
            !compare_answer(&module, &expected, &envelope).is_empty(),
            "{expected}"
        );
        assert!(!refused.is_empty(), "{expected}");
    }
}

#[test]
fn mismatch_has_pointer_and_values() {
    let expected = json!({"ok": true, "data": {"issues": [{"type": "speed"}, {}]}});
    let found = compare_answer(&module(), &expected, &envelope());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].pointer, "/data/issues/0/type");
    assert_eq!(found[0].expected, Some(json!("speed")));
    assert_eq!(found[0].actual, Some(json!("security")));
}

#[test]
fn coverage_counts_each_field_once_and_is_bounded() {
    let mut coverage = Coverage::of(&module());
    assert!(coverage.missing().any(|field| field == "issues[].type"));
    assert!(coverage.missing().any(|field| field == "tree.child.child"));
    assert_eq!(coverage.exercised(), 0);
    coverage.exercise(&json!({"rationale": "r", "issues": []}));
    coverage.exercise(&json!({"rationale": "r", "issues": [{"type": "t"}], "unknown": 1}));
    assert_eq!(coverage.exercised(), 3);
    assert!(coverage.missing().any(|field| field == "issues[].line"));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z$_*.\\[\\]]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("[a-z]{1,3}|_validate|_contains|\\$validate|ok|data", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// An answer matches a test that equals it.
    #[test]
    fn every_answer_matches_itself(data in any_json()) {
        let envelope = json!({"ok": true, "meta": {"confidence": 1}, "data": {"d": data}});
        prop_assert_eq!(compare_answer(&module(), &envelope, &envelope), vec![]);
    }

    #[test]
    fn any_test_and_answer_can_be_compared(expected in any_json(), envelope in any_json()) {
        let module = module();
        drop(compare_answer(&module, &expected, &envelope));
        Coverage::of(&module).exercise(&envelope);
    }
}
