//! The slowest schemas that admission accepts. Each family grows in one direction; the largest admitted
//! member and smaller ones are compiled and applied to hostile values.

use std::fs;
use std::time::Duration;

use module::schema::CompiledSchema;
use module::schema::admission::admit;
use serde_json::{Map, Value, json};

/// Of the processor, not of the clock: other tests run at the same time. The validator is optimised in tests.
const SLOWEST: Duration = Duration::from_millis(200);
const STACK_BYTES: usize = 64 * 1024 * 1024;

type Family = (&'static str, fn(usize) -> Value, fn() -> Vec<Value>);

const FAMILIES: &[Family] = &[
    ("members", members, objects),
    ("chain at one value", |n| chain(n, 1, "allOf"), scalars),
    ("all of two", |n| chain(n, 2, "allOf"), scalars),
    ("any of three", |n| chain(n, 3, "anyOf"), scalars),
    ("one of two", |n| chain(n, 2, "oneOf"), objects),
    ("wide alternatives", wide, objects),
    (
        "costly items",
        |n| json!({"items": chain(n, 2, "anyOf")["$defs"]["d0"], "$defs": chain(n, 2, "anyOf")["$defs"]}),
        arrays,
    ),
    ("chain of members", chain_of_members, deep),
    ("recursion through a chain", recursive_chain, deep),
    ("doubling recursion", |n| doubling(n, "allOf"), deep),
    ("doubling alternatives", |n| doubling(n, "anyOf"), deep),
    ("doubling exclusive alternatives", |n| doubling(n, "oneOf"), deep),
    ("doubling negation", doubling_negation, deep),
    ("unevaluated", unevaluated, objects),
    ("recursive unevaluated", recursive_unevaluated, deep),
    (
        "backtracking patterns",
        |n| patterns(n, "^(?=(a+)+$)(a|aa)+b$"),
        texts,
    ),
    (
        "look-behind patterns",
        |n| patterns(n, "(?<=a)(a|b|ab)*c$"),
        texts,
    ),
    (
        "pattern repetitions",
        |n| patterns(1, &format!("^(\\p{{L}}{{{n}}})?$")),
        texts,
    ),
    (
        "many large patterns",
        |n| patterns(n, "^(\\p{L}|\\w){20}$"),
        texts,
    ),
    ("pattern members", pattern_members, objects),
    (
        "large enum",
        |n| json!({"items": {"enum": (0..n).map(|it| json!({"a": it})).collect::<Vec<_>>()}}),
        arrays,
    ),
    (
        "unique items",
        |n| json!({"allOf": vec![json!({"uniqueItems": true}); n]}),
        arrays,
    ),
    (
        "contains",
        |n| json!({"allOf": vec![json!({"contains": {"type": "null"}, "minContains": 3}); n]}),
        arrays,
    ),
    (
        "prefix items",
        |n| json!({"prefixItems": vec![json!({"type": "integer"}); n], "items": {"type": "null"}}),
        arrays,
    ),
    (
        "property names",
        |n| json!({"allOf": vec![json!({"propertyNames": {"pattern": "^[b-z]+$"}}); n]}),
        objects,
    ),
    ("dynamic references", dynamic, deep),
    ("dynamic references with a choice", dynamic_choice, deep),
    ("anchors", |n| named(n, 2), scalars),
    ("anchors through members", |n| named(n, 1), deep),
    ("metaschema", metaschema, deep),
    ("metaschema of an object", metaschema, objects),
    (
        "formats",
        |n| json!({"items": {"anyOf": (0..n).map(|_| json!({"format": "uri"})).collect::<Vec<_>>()}}),
        arrays,
    ),
];

#[test]
fn slowest_admitted_schemas_are_fast() {
    let mut slow = Vec::new();
    for (name, family, values) in FAMILIES {
        // The largest schema is applied to shallow values only; a smaller one also to deep ones.
        let mut size = largest_admitted(*family);
        while size > 0 {
            for (kind, spent) in spent(family(size), values()) {
                if spent > SLOWEST {
                    slow.push(format!(
                        "{name} of size {size}: {kind} takes {} ms",
                        spent.as_millis()
                    ));
                }
            }
            size /= 3;
        }
    }
    assert!(slow.is_empty(), "{slow:#?}");
}

fn largest_admitted(family: fn(usize) -> Value) -> usize {
    let admitted = |size: usize| admit(&family(size)).is_ok();
    let (mut below, mut above) = (1, 2);
    assert!(admitted(1));
    while above < 20_000 && admitted(above) {
        (below, above) = (above, above * 2);
    }
    while above - below > 1 {
        let size = usize::midpoint(below, above);
        if admitted(size) {
            below = size;
        } else {
            above = size;
        }
    }
    below
}

/// The time of each piece of work of which a request can cause one: compilation, and the validation of a value.
fn spent(schema: Value, values: Vec<Value>) -> Vec<(String, Duration)> {
    let apply = move || {
        let mut spent = Vec::new();
        let start = processor_time();
        let compiled = CompiledSchema::of_request(schema);
        spent.push((String::from("compilation"), processor_time() - start));
        for (index, value) in values.iter().enumerate() {
            if let Ok(compiled) = &compiled {
                let start = processor_time();
                std::hint::black_box((compiled.is_valid(value), compiled.errors(value).count()));
                spent.push((format!("value {index}"), processor_time() - start));
            }
        }
        spent
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(apply);
    thread.unwrap().join().unwrap()
}

/// How long this thread has run.
fn processor_time() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanos = text.split_whitespace().next().unwrap().parse().unwrap();
    Duration::from_nanos(nanos)
}

fn definition(index: usize) -> Value {
    json!({"$ref": format!("#/$defs/d{index}")})
}

fn definitions(length: usize, make: impl Fn(usize) -> Value) -> Value {
    let mut all: Map<String, Value> = (0..length)
        .map(|index| (format!("d{index}"), make(index)))
        .collect();
    all.insert(format!("d{length}"), json!({"type": "null"}));
    json!({"$ref": "#/$defs/d0", "$defs": all})
}

fn chain(length: usize, width: usize, keyword: &str) -> Value {
    definitions(
        length,
        |index| json!({keyword: vec![definition(index + 1); width]}),
    )
}

fn chain_of_members(length: usize) -> Value {
    definitions(
        length,
        |index| json!({"additionalProperties": definition(index + 1)}),
    )
}

fn recursive_chain(length: usize) -> Value {
    let mut schema = chain(length, 1, "allOf");
    schema["$defs"][format!("d{length}")] = json!({"additionalProperties": {"$ref": "#/$defs/d0"}});
    schema
}

fn doubling(width: usize, keyword: &str) -> Value {
    let below = json!({"additionalProperties": {"$ref": "#/$defs/node"}, "minProperties": 1});
    json!({"$ref": "#/$defs/node", "$defs": {"node": {keyword: vec![below; width]}}})
}

fn doubling_negation(width: usize) -> Value {
    let below = json!({"not": {"additionalProperties": {"$ref": "#/$defs/node"}}});
    json!({"$ref": "#/$defs/node", "$defs": {"node": {"anyOf": vec![below; width]}}})
}

fn members(count: usize) -> Value {
    let all: Map<String, Value> = (0..count)
        .map(|index| (format!("m{index}"), json!({"type": "string"})))
        .collect();
    json!({"properties": all, "required": all.keys().collect::<Vec<_>>()})
}

fn wide(width: usize) -> Value {
    json!({
        "anyOf": (0..width).map(|_| json!({"additionalProperties": {"$ref": "#/$defs/many"}})).collect::<Vec<_>>(),
        "$defs": {"many": {"oneOf": (0..width).map(|_| json!({"type": "null"})).collect::<Vec<_>>()}},
    })
}

fn unevaluated(length: usize) -> Value {
    definitions(
        length,
        |index| json!({"anyOf": [definition(index + 1)], "unevaluatedProperties": {"type": "null"}}),
    )
}

fn recursive_unevaluated(width: usize) -> Value {
    let below = json!({"properties": {"a": {"$ref": "#/$defs/node"}}});
    let node = json!({"anyOf": vec![below; width], "unevaluatedProperties": false});
    json!({"$ref": "#/$defs/node", "$defs": {"node": node}})
}

fn patterns(count: usize, pattern: &str) -> Value {
    let all: Vec<Value> = (0..count)
        .map(|index| json!({"pattern": format!("{pattern}|{index}")}))
        .collect();
    json!({"items": {"anyOf": all}})
}

fn pattern_members(count: usize) -> Value {
    let all: Map<String, Value> = (0..count)
        .map(|index| (format!("^(?=.*{index})(m|1)+$"), json!({"type": "null"})))
        .collect();
    json!({"patternProperties": all, "additionalProperties": false})
}

fn dynamic(width: usize) -> Value {
    let below = json!({"additionalProperties": {"$dynamicRef": "#node"}});
    json!({"$dynamicAnchor": "node", "allOf": vec![below; width]})
}

fn dynamic_choice(width: usize) -> Value {
    let below = json!({"additionalProperties": {"$dynamicRef": "#node"}});
    let node = |id: &str| json!({"$id": id, "$dynamicAnchor": "node", "allOf": vec![below.clone(); width]});
    let mut schema = node("urn:a");
    schema["$defs"] = json!({"b": node("urn:b")});
    schema
}

fn named(length: usize, width: usize) -> Value {
    let mut schema = definitions(length, |index| {
        let next = json!({"$ref": format!("#a{}", index + 1)});
        match width {
            1 => json!({"$anchor": format!("a{index}"), "additionalProperties": next}),
            width => json!({"$anchor": format!("a{index}"), "anyOf": vec![next; width]}),
        }
    });
    schema["$defs"][format!("d{length}")] = json!({"$anchor": format!("a{length}"), "type": "null"});
    schema
}

fn metaschema(count: usize) -> Value {
    let reference = json!({"$ref": "https://json-schema.org/draft/2020-12/schema"});
    let all: Vec<Value> = (0..count)
        .map(|_| json!({"additionalProperties": reference}))
        .collect();
    json!({"anyOf": all})
}

fn scalars() -> Vec<Value> {
    vec![json!(null), json!("a"), json!(1)]
}

fn objects() -> Vec<Value> {
    let object = |count: usize, value: Value| -> Value {
        (0..count)
            .map(|index| (format!("m{index}"), value.clone()))
            .collect::<Map<_, _>>()
            .into()
    };
    vec![
        object(3, json!(null)),
        object(5_000, json!(1)),
        object(100, object(50, json!(null))),
    ]
}

fn arrays() -> Vec<Value> {
    let distinct: Vec<Value> = (0..10_000).map(|it| json!({"a": it})).collect();
    vec![
        json!([null]),
        json!(vec![1; 10_000]),
        json!(vec!["a:b"; 10_000]),
        json!(distinct),
    ]
}

fn texts() -> Vec<Value> {
    vec![
        json!(["a".repeat(30)]),
        json!(vec!["a".repeat(1_000); 60]),
        json!(["a".repeat(60_000)]),
    ]
}

fn deep() -> Vec<Value> {
    let nested = |depth: usize, leaf: Value| (0..depth).fold(leaf, |value, _| json!({"a": value}));
    let tree = (0..12).fold(json!(1), |value, _| json!({"a": value, "b": value}));
    let mut all: Vec<Value> = [1, 4, 8, 12, 16, 20, 24, 32, 60, 120]
        .map(|depth| nested(depth, json!(1)))
        .into();
    all.extend([nested(20, json!({})), nested(120, json!({})), tree]);
    all
}
