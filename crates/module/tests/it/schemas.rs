//! The published schemas agree with the hand-written checks on every vector and on mutations of it.

use std::sync::LazyLock;

use jsonschema::Validator;
use module::conformance::embedded;
use module::diagnostic::Severity;
use module::envelope::{Profile, check_structure};
use module::media;
use module::stream::check_chunk;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

macro_rules! schema {
    ($name:literal) => {
        LazyLock::new(|| {
            let text = include_str!(concat!(
                "../../../../docs/reference/schemas/",
                $name,
                ".schema.json"
            ));
            let schema: Value = serde_json::from_str(text).unwrap();
            assert!(jsonschema::draft7::meta::is_valid(&schema), $name);
            jsonschema::draft7::new(&schema).unwrap()
        })
    };
}

static ENVELOPE: LazyLock<Validator> = schema!("envelope");
static CEP: LazyLock<Validator> = schema!("envelope-cep-2.2");
static CHUNK: LazyLock<Validator> = schema!("chunk");
static INPUT: LazyLock<Validator> = schema!("media-input");
static OUTPUT: LazyLock<Validator> = schema!("media-output");
static VECTOR: LazyLock<Validator> = schema!("vector");

/// The public shapes, each with a hand-written check and a schema.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Envelope,
    Cep,
    Chunk,
    Input,
    Output,
}

impl Shape {
    fn by_hand(self, value: &Value) -> Vec<String> {
        let texts =
            |found: Vec<module::envelope::ShapeViolation>| found.iter().map(|v| format!("{v:?}")).collect();
        match self {
            Self::Envelope => texts(check_structure(value, Profile::Cognitive)),
            Self::Cep => texts(check_structure(value, Profile::Cep22)),
            Self::Chunk => check_chunk(value)
                .iter()
                .filter(|violation| violation.severity == Severity::Error)
                .map(|violation| format!("{violation:?}"))
                .collect(),
            Self::Input => texts(media::check_input(value)),
            Self::Output => texts(media::check_output(value)),
        }
    }

    fn schema(self) -> &'static Validator {
        match self {
            Self::Envelope => &ENVELOPE,
            Self::Cep => &CEP,
            Self::Chunk => &CHUNK,
            Self::Input => &INPUT,
            Self::Output => &OUTPUT,
        }
    }

    fn check(self, value: &Value) {
        let by_hand = self.by_hand(value);
        let by_schema = self.schema().is_valid(value);
        assert_eq!(
            by_hand.is_empty(),
            by_schema,
            "{self:?} {value:#}\nby hand: {by_hand:#?}"
        );
    }
}

/// Every subject of the built-in vectors, with its expected shape.
fn subjects() -> Vec<(Shape, Value)> {
    let mut subjects = Vec::new();
    for (_, vector) in embedded() {
        let category = vector["$test"]["category"].as_str().unwrap_or_default();
        if let Some(envelope) = vector.get("envelope") {
            let shape = match (category, vector["$test"]["profile"].as_str()) {
                ("streaming", _) => Shape::Chunk,
                (_, Some("cep-2.2")) => Shape::Cep,
                _ => Shape::Envelope,
            };
            subjects.push((shape, envelope.clone()));
            for value in envelope
                .get("data")
                .and_then(Value::as_object)
                .into_iter()
                .flat_map(Map::values)
            {
                if value.get("type").is_some_and(Value::is_string) {
                    subjects.push((Shape::Output, value.clone()));
                }
            }
        }
        for event in vector
            .get("events")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            subjects.push((Shape::Chunk, event.clone()));
        }
        let input = vector.get("input").filter(|_| category == "multimodal");
        for value in input.and_then(Value::as_object).into_iter().flat_map(Map::values) {
            match value {
                Value::Array(items) => subjects.extend(items.iter().map(|item| (Shape::Input, item.clone()))),
                Value::Object(_) => subjects.push((Shape::Input, value.clone())),
                _ => {}
            }
        }
    }
    subjects
}

static SUBJECTS: LazyLock<Vec<(Shape, Value)>> = LazyLock::new(subjects);

#[test]
fn schemas_agree_with_checks_on_builtin_vectors() {
    assert!(SUBJECTS.len() > 200);
    for (shape, value) in SUBJECTS.iter() {
        shape.check(value);
    }
}

#[test]
fn builtin_vectors_match_published_schema() {
    for (path, vector) in embedded() {
        let errors: Vec<_> = VECTOR
            .iter_errors(&vector)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{path}: {errors:?}");
    }
}

/// A replacement value for a mutation.
fn replacement() -> impl Strategy<Value = Value> {
    proptest::sample::select(vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(2),
        json!(3.0),
        json!(-1),
        json!(0.5),
        json!(1.5),
        json!(101),
        json!(""),
        json!("low"),
        json!("delta"),
        json!("snapshot"),
        json!("url"),
        json!("base64"),
        json!("file"),
        json!("upload_ref"),
        json!("image/png"),
        json!("application/pdf"),
        json!("text/plain"),
        json!("https://example.com/a"),
        json!("AAAA"),
        json!("AAE="),
        json!("AB=="),
        json!("a3f2b1"),
        json!("E3001"),
        json!("E9123"),
        json!("2.2"),
        json!("sha256"),
        json!("2026-02-04T12:00:00.5+01:00"),
        json!("2026-02-04 12:00"),
        json!("é".repeat(280)),
        json!("é".repeat(281)),
        json!([]),
        json!([{"text": "a", "suggested_mapping": "b"}]),
        json!({}),
        json!({"insights": []}),
        json!({"rationale": "a"}),
        json!({"offset": 0, "hash": "000000"}),
        json!({"code": "E1000", "message": "a"}),
        json!({"algorithm": "crc32", "value": "0123abCD"}),
        json!({"percent": 100}),
        json!({"seq": 1, "type": "delta", "delta": ""}),
    ])
}

#[derive(Clone, Debug)]
enum Mutation {
    Remove,
    Replace(Value),
    Insert(&'static str, Value),
}

fn mutation() -> impl Strategy<Value = (usize, Mutation)> {
    let keys = proptest::sample::select(vec![
        "ok",
        "meta",
        "data",
        "error",
        "partial_data",
        "version",
        "_note",
        "extra",
        "confidence",
        "risk",
        "explain",
        "rationale",
        "extensions",
        "insights",
        "evidence",
        "recoverable",
        "suggestion",
        "latency_ms",
        "trace_id",
        "model",
        "chunk",
        "progress",
        "final",
        "usage",
        "seq",
        "type",
        "field",
        "delta",
        "checkpoint",
        "streaming",
        "session_id",
        "resumed",
        "resume_from_seq",
        "recovery",
        "last_seq",
        "url",
        "path",
        "media_type",
        "checksum",
        "upload_id",
        "width",
        "expires_at",
        "generation_params",
        "processing_time_ms",
        "input_tokens",
        "stage",
    ]);
    let change = prop_oneof![
        Just(Mutation::Remove),
        replacement().prop_map(Mutation::Replace),
        (keys, replacement()).prop_map(|(key, value)| Mutation::Insert(key, value)),
    ];
    (
        any::<prop::sample::Index>().prop_map(|index| index.index(1000)),
        change,
    )
}

fn pointers(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                pointers(
                    value,
                    format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")),
                    found,
                );
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate().take(3) {
                pointers(item, format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
    found.push(at);
}

fn mutate(value: &mut Value, place: usize, mutation: Mutation) {
    let mut places = Vec::new();
    pointers(value, String::new(), &mut places);
    let place = &places[place % places.len()];
    match mutation {
        Mutation::Replace(new) => {
            if let Some(old) = value.pointer_mut(place) {
                *old = new;
            }
        }
        Mutation::Insert(key, new) => {
            if let Some(Value::Object(map)) = value.pointer_mut(place) {
                map.insert(String::from(key), new);
            }
        }
        Mutation::Remove => {
            let Some((parent, key)) = place.rsplit_once('/') else {
                return;
            };
            if let Some(Value::Object(map)) = value.pointer_mut(parent) {
                map.remove(&key.replace("~1", "/").replace("~0", "~"));
            }
        }
    }
}

proptest! {
    #![proptest_config(crate::property::cases(2000))]

    #[test]
    fn schemas_agree_with_checks_on_mutations(
        start in any::<prop::sample::Index>(),
        mutations in prop::collection::vec(mutation(), 1..4),
    ) {
        let (shape, mut value) = start.get(&SUBJECTS).clone();
        for (place, mutation) in mutations {
            mutate(&mut value, place, mutation);
        }
        shape.check(&value);
    }
}
