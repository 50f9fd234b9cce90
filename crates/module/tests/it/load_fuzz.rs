//! Checking a module with arbitrary files never panics and has bounded time and diagnostics. Random bytes
//! rarely pass a parser, so valid texts with random damage are tested as well.

use std::time::{Duration, Instant};

use module::file_map::FileMap;
use module::{Strict, check, limits};
use proptest::prelude::*;

const MANIFEST: &str = "name: a
version: 1.0.0
responsibility: r
tier: decision
overflow: {enabled: true, max_items: 5}
policies: {network: deny}
io: {input: ./schema.json#/input, data: ./schema.json#/data}
composition: {requires: [{name: b, version: ^1.0.0}], dataflow: [{from: input, to: b, mapping: {x: $.a}}]}
context: {mode: fork, accepts: [{type: t, schema: ./schema.json}]}
tests: [tests/a.input.json -> tests/a.expected.json]
";

const SCHEMA: &str = r##"{
  "meta": {"type": "object", "required": ["confidence"], "properties": {"explain": {"maxLength": 280}}},
  "input": {"type": "object", "properties": {"t": {"$ref": "#/$defs/t"}, "k": {"oneOf": [{"enum": ["a"]},
    {"type": "object", "required": ["custom", "reason"], "properties": {"custom": {"type": "string"}}}]}}},
  "data": {"allOf": [{"$ref": "#/$defs/t"}], "properties": {"media_type": {"pattern": "^image/"}}},
  "$defs": {"t": {"type": "object", "properties": {"child": {"$ref": "#/$defs/t"}}}}
}"##;

const PROMPT: &str =
    "Do $INPUT with ${t}, @call:b($ARGUMENTS)[optional] and {{b.meta.risk}}; see assets/x.png.";

fn files(manifest: &[u8], schema: &[u8], prompt: &[u8]) -> FileMap {
    FileMap::from_iter([
        ("module.yaml", manifest),
        ("schema.json", schema),
        ("prompt.md", prompt),
        ("tests/a.input.json", br#"{"t": {"child": {}}}"#),
        (
            "tests/a.expected.json",
            br#"{"ok": true, "meta": {}, "data": {}}"#,
        ),
    ])
}

fn bounded(files: &FileMap) {
    let started = Instant::now();
    for strict in [Strict::Standard, Strict::V25] {
        let loaded = check(files, strict);
        assert!(loaded.report.iter().count() <= limits::DIAGNOSTICS_MAX);
    }
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn any_bytes_as_a_manifest() {
    bolero::check!().with_iterations(200).for_each(|bytes: &[u8]| {
        bounded(&files(bytes, SCHEMA.as_bytes(), PROMPT.as_bytes()));
        bounded(&FileMap::from_iter([
            ("MODULE.md", bytes),
            ("schema.json", SCHEMA.as_bytes()),
        ]));
    });
}

#[test]
fn any_bytes_as_a_schema() {
    bolero::check!().with_iterations(200).for_each(|bytes: &[u8]| {
        bounded(&files(MANIFEST.as_bytes(), bytes, PROMPT.as_bytes()));
    });
}

/// A valid text with a part of it replaced.
fn damaged(text: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        "[\\[\\]{}:,\"'#&*!|>$/~ \n-]{0,6}",
        "(\"\\$ref\": \"#[/a-z$]{0,12}\"|true|null|-?[0-9]{1,20}|é|\u{feff}|\\x00)",
        Just(String::new()),
    ];
    (0..text.len(), 0..12usize, piece).prop_map(move |(at, length, piece)| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.splice(at..(at + length).min(text.len()), piece.into_bytes());
        bytes
    })
}

proptest! {
    #![proptest_config(crate::property::cases(60))]

    #[test]
    fn damaged_texts(manifest in damaged(MANIFEST), schema in damaged(SCHEMA), prompt in damaged(PROMPT)) {
        bounded(&files(&manifest, SCHEMA.as_bytes(), PROMPT.as_bytes()));
        bounded(&files(MANIFEST.as_bytes(), &schema, PROMPT.as_bytes()));
        bounded(&files(MANIFEST.as_bytes(), SCHEMA.as_bytes(), &prompt));
    }
}
