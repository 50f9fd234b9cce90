//! Schemas at and beyond each limit.

use serde_json::{Map, Value, json};

use super::{Refusal, admit};
use crate::limits;
use crate::schema::CompiledSchema;
use crate::steps::assert_linear;

fn refusal(schema: &Value) -> Option<Refusal> {
    admit(schema).err()
}

/// `$defs` in which `schema` makes each definition from the reference to the next one.
fn chain(length: usize, schema: impl Fn(Value) -> Value) -> Value {
    let next = |index: usize| json!({"$ref": format!("#/$defs/d{}", index + 1)});
    let mut definitions: Map<String, Value> = (0..length)
        .map(|index| (format!("d{index}"), schema(next(index))))
        .collect();
    definitions.insert(format!("d{length}"), json!({"type": "integer"}));
    json!({"$ref": "#/$defs/d0", "$defs": definitions})
}

#[test]
fn refuses_long_reference_chain() {
    assert_eq!(refusal(&chain(60, |next| next)), None);
    assert_eq!(refusal(&chain(100, |next| next)), Some(Refusal::ReferencePath));
    assert_eq!(refusal(&chain(750, |next| next)), Some(Refusal::Definitions));
    assert_eq!(refusal(&chain(5_000, |next| next)), Some(Refusal::Nodes));
    // Through members the chain is as long as the instance is deep, which the parser limits.
    let members = chain(450, |next| json!({"properties": {"a": next}}));
    assert_eq!(refusal(&members), None);
}

#[test]
fn refuses_multiplied_evaluations_of_one_value() {
    let twice = |length| chain(length, |next| json!({"allOf": [next, next]}));
    assert_eq!(refusal(&twice(5)), None);
    assert_eq!(refusal(&twice(30)), Some(Refusal::Cost));
    for keyword in ["anyOf", "oneOf"] {
        let schema = chain(30, |next| json!({keyword: [next, next]}));
        assert_eq!(refusal(&schema), Some(Refusal::Cost), "{keyword}");
    }
    let conditional = chain(30, |next| json!({"if": next, "then": next, "else": next}));
    assert_eq!(refusal(&conditional), Some(Refusal::Cost));
    let dependent = chain(30, |next| json!({"dependentSchemas": {"a": next, "b": next}}));
    assert_eq!(refusal(&dependent), Some(Refusal::Cost));
    let unevaluated = chain(
        30,
        |next| json!({"allOf": [next], "unevaluatedProperties": false}),
    );
    assert_eq!(refusal(&unevaluated), Some(Refusal::Cost));
}

#[test]
fn recursion_that_doubles_per_level_is_applied_to_shallow_values_only() {
    let schema = json!({
        "$ref": "#/$defs/node",
        "$defs": {"node": {"allOf": [
            {"properties": {"a": {"$ref": "#/$defs/node"}}},
            {"properties": {"a": {"$ref": "#/$defs/node"}}},
        ]}},
    });
    let compiled = CompiledSchema::of_request(schema).unwrap();
    let nested = |depth: usize| (0..depth).fold(json!(1), |value, _| json!({"a": value}));
    assert!(compiled.is_valid(&nested(10)));
    assert!(!compiled.is_valid(&nested(60)));
    let errors: Vec<String> = compiled.errors(&nested(60)).map(|it| it.to_string()).collect();
    assert_eq!(errors, ["validating the value takes too many steps"]);
}

#[test]
fn ordinary_recursion_is_applied_to_any_depth() {
    let value = json!({"anyOf": [
        {"type": ["string", "number", "boolean", "null"]},
        {"type": "object", "additionalProperties": {"$ref": "#/$defs/json"}},
        {"type": "array", "items": {"$ref": "#/$defs/json"}},
    ]});
    let tree = json!({"type": "object", "properties": {
        "left": {"$ref": "#/$defs/tree"}, "right": {"$ref": "#/$defs/tree"}, "value": {"$ref": "#/$defs/json"},
    }});
    let schema = json!({"$ref": "#/$defs/tree", "$defs": {"tree": tree, "json": value}});
    let compiled = CompiledSchema::of_request(schema).unwrap();
    let deep = (0..100).fold(
        json!({}),
        |value, _| json!({"left": {"value": [1, {}]}, "right": value}),
    );
    assert!(compiled.is_valid(&deep));
}

#[test]
fn refuses_reference_loops_and_hidden_targets() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"not": {"$ref": "#"}}}}),
        json!({"dependentSchemas": {"a": {"$ref": "#"}}}),
        json!({"$dynamicAnchor": "a", "anyOf": [{"$dynamicRef": "#a"}]}),
    ] {
        assert_eq!(refusal(&schema), Some(Refusal::ReferenceLoop), "{schema}");
    }
    // The reference means `#/$defs/b` of the embedded resource, not of the document.
    let hidden = json!({
        "$ref": "#/$defs/a",
        "$defs": {
            "a": {"$id": "https://a.example/", "$ref": "#/$defs/b", "$defs": {"b": {"$ref": "#"}}},
            "b": true,
        },
    });
    assert_eq!(refusal(&hidden), Some(Refusal::ReferenceLoop));
    let named = json!({"$ref": "https://a.example/#x", "$defs": {
        "a": {"$id": "https://a.example/", "$defs": {"b": {"$anchor": "x", "allOf": [{"$ref": "#x"}]}}},
    }});
    assert_eq!(refusal(&named), Some(Refusal::ReferenceLoop));
    // No keyword leads to `a`, so its `$id` is not registered.
    let through = json!({"$ref": "#/x/a/b", "x": {"a": {"$id": "https://a.example/", "b": true}}});
    assert_eq!(refusal(&through), Some(Refusal::EmbeddedId));
    let recursive = json!({
        "$schema": "https://json-schema.org/draft/2019-09/schema",
        "$defs": {"a": {"$id": "a", "properties": {"a": {"$recursiveRef": "#"}}}},
    });
    assert_eq!(refusal(&recursive), Some(Refusal::EmbeddedId));
    let unrelated = json!({"properties": {"$id": {"type": "string"}, "b": {"$id": "#/properties/b"}}});
    assert_eq!(refusal(&unrelated), None);
}

#[test]
fn refuses_large_schemas() {
    let many = |count: usize, schema: Value| {
        let properties: Map<String, Value> = (0..count)
            .map(|index| (format!("p{index}"), schema.clone()))
            .collect();
        json!({"properties": properties})
    };
    assert_eq!(refusal(&many(4_900, json!({"type": "string"}))), None);
    assert_eq!(
        refusal(&many(5_100, json!({"type": "string"}))),
        Some(Refusal::Nodes)
    );
    let references =
        json!({"properties": many(1_001, json!({"$ref": "#/$defs/a"}))["properties"], "$defs": {"a": true}});
    assert_eq!(refusal(&references), Some(Refusal::References));
    assert_eq!(
        refusal(&many(201, json!({"pattern": "a"}))),
        Some(Refusal::Patterns)
    );
    // Each of the 1,000 pointers contains the long name.
    let long = json!({"properties": {"x".repeat(5_000): many(1_000, json!({}))}});
    assert_eq!(refusal(&long), Some(Refusal::Bytes));
    // Names and values are not schemas.
    let data = json!({"const": {"$ref": "#"}, "properties": {"$ref": {"pattern": "a"}}});
    assert_eq!(refusal(&data), None);
}

#[test]
fn refuses_long_repetitions() {
    let pattern = |text: &str| refusal(&json!({"pattern": text}));
    for accepted in [
        "a{1000}",
        "^[a-z]{2,64}$",
        "x{",
        "a{,}",
        "\\{999999\\}",
        "[{999999}]",
        "(ab|c)*",
    ] {
        assert_eq!(pattern(accepted), None, "{accepted}");
    }
    for refused in [
        "a{2001}",
        "(a{100}){100}",
        "((a{20}b){20}){20}",
        "a{1,99999999999999999999}",
        "(?:aaaa){600,}",
    ] {
        assert_eq!(pattern(refused), Some(Refusal::Repetition), "{refused}");
    }
    assert_eq!(
        pattern(&"a".repeat(limits::SCHEMA_REPETITION_MAX + 1)),
        Some(Refusal::Repetition)
    );
    let member = json!({"patternProperties": {"a{5000}": true}});
    assert_eq!(refusal(&member), Some(Refusal::Repetition));
}

#[test]
fn names_of_schemas_do_not_hide_their_cost() {
    let twice = |length: usize, id: fn(usize) -> Value, reference: fn(usize) -> String| {
        let mut definitions = Map::new();
        for index in 0..length {
            let next = json!({"$ref": reference(index + 1)});
            let mut schema = id(index);
            schema["allOf"] = json!([next, next]);
            definitions.insert(format!("d{index}"), schema);
        }
        definitions.insert(format!("d{length}"), id(length));
        json!({"$ref": reference(0), "$defs": definitions})
    };
    let anchor = |index| json!({"$anchor": format!("a{index}")});
    let anchors = |length| twice(length, anchor, |index| format!("#a{index}"));
    let id = |index| json!({"$id": format!("urn:x:{index}")});
    let ids = |length| twice(length, id, |index| format!("urn:x:{index}"));
    let relative = |length| {
        twice(
            length,
            |index| json!({"$id": format!("https://a.example/b/{index}"), "$dynamicAnchor": "x"}),
            |index| format!("https://a.example/c/../b/{index}#x"),
        )
    };
    for family in [&anchors as &dyn Fn(usize) -> Value, &ids, &relative] {
        assert_eq!(refusal(&family(4)), None);
        assert_eq!(refusal(&family(30)), Some(Refusal::Cost));
        let schema = family(4);
        let compiled = CompiledSchema::of_request(schema).unwrap();
        assert!(compiled.is_valid(&json!(1)));
    }
}

#[test]
fn metaschema_of_the_draft_is_a_target() {
    for (uri, wrong) in [
        ("http://json-schema.org/draft-07/schema#", json!({"type": 1})),
        (
            "https://json-schema.org/draft/2020-12/schema",
            json!({"properties": {"a": {"minLength": -1}}}),
        ),
    ] {
        let schema = json!({"$schema": uri, "properties": {"schema": {"$ref": uri}}});
        let compiled = CompiledSchema::of_request(schema).unwrap();
        let right = json!({"schema": {"properties": {"a": {"type": "string"}}}});
        assert!(compiled.is_valid(&right), "{uri}");
        assert!(!compiled.is_valid(&json!({"schema": wrong})), "{uri}");
    }
    // That of another draft is another document.
    let other = json!({"$ref": "http://json-schema.org/draft-07/schema#"});
    assert!(CompiledSchema::of_request(other).is_err());
}

/// Hostile schemas of half and of all that is allowed: many values, references, anchors, parts with a URI, and
/// members of a shared definition.
#[test]
fn schemas_are_admitted_in_linear_time() {
    let many = |count: usize, make: fn(usize) -> Value| -> Map<String, Value> {
        (0..count)
            .map(|index| (format!("p{index}"), make(index)))
            .collect()
    };
    let families: [(usize, &dyn Fn(usize) -> Value); 5] = [
        (
            2_000,
            &|count| json!({"properties": many(count, |_| json!({"type": "string"}))}),
        ),
        (400, &|count| {
            json!({"properties": many(count, |_| json!({"$ref": "#/$defs/a/$defs/b"})),
            "$defs": {"a": {"$defs": {"b": true}}}})
        }),
        (200, &|count| {
            json!({"properties": many(count, |index| json!({"$ref": format!("#a{index}")})),
            "$defs": many(count, |index| json!({"$anchor": format!("a{index}")}))})
        }),
        (100, &|count| {
            json!({"properties": many(count, |index| json!({"$ref": format!("urn:a:{index}#/$defs/b")})),
            "$defs": many(count, |index| json!({"$id": format!("urn:a:{index}"), "$defs": {"b": true}}))})
        }),
        (100, &|count| {
            json!({"$ref": "#/$defs/p0", "$defs": many(count, |_| json!({"anyOf": [
            {"items": {"$ref": "#/$defs/p0"}}, {"additionalProperties": {"$ref": "#/$defs/p1"}}]}))})
        }),
    ];
    for (size, family) in families {
        assert_eq!(refusal(&family(2 * size)), None, "{size}");
        assert_linear(size, |count| drop(admit(&family(count))));
    }
}

#[test]
fn cost_of_an_input_is_computed_in_linear_time() {
    let schema = json!({"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}], "$defs": {
        "a": {"items": {"$ref": "#"}}, "b": {"additionalProperties": {"$ref": "#"}}, "c": {"pattern": "(?=a)"},
    }});
    let compiled = CompiledSchema::of_request(schema).unwrap();
    assert_linear(10_000, |size| {
        let value = Value::Array(vec![json!({"a": [1]}); size]);
        compiled.is_valid(&value);
        compiled.errors(&value).next();
    });
}

/// As `docs/guide/vendor-clients.md` says.
#[test]
fn format_is_asserted_by_draft() {
    for (uri, asserts) in [
        ("http://json-schema.org/draft-07/schema#", true),
        ("https://json-schema.org/draft/2020-12/schema", false),
    ] {
        let schema = json!({"$schema": uri, "format": "ipv4"});
        let compiled = CompiledSchema::of_request(schema.clone()).unwrap();
        assert_eq!(compiled.is_valid(&json!("no address")), !asserts, "{uri}");
        let of_module = CompiledSchema::new(schema, jsonschema::Draft::Draft202012).unwrap();
        assert!(!of_module.is_valid(&json!("no address")), "{uri}");
    }
}
