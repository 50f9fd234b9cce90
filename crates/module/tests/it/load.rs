//! Every format loads into the same internal type without loss.

use module::diagnostic::Severity;
use module::manifest::{Access, ContextMode, Tier};
use module::schema::Section;
use module::{FileMap, Format, Module, load};
use proptest::prelude::*;
use serde_json::{Value, json};

const V22: &str = "name: code-simplifier
version: 2.2.0
responsibility: simplify code while preserving behavior
tier: decision
excludes: [adding new features]
overflow: {enabled: true, max_items: 5}
enums: {strategy: extensible}
io:
  input: ./schema.json#/input
  data: ./schema.json#/data
tests:
  - tests/a.input.json -> tests/a.expected.json
x-own: {kept: [1, 2]}
";

const SCHEMA: &str = r##"{
  "$schema": "https://example.org/schema/v2.2.json",
  "$id": "https://example.org/modules/x/schema.json",
  "input": {"type": "object", "required": ["code"], "properties": {"code": {"type": "string"}}},
  "data": {"type": "object", "required": ["rationale"], "properties": {
    "rationale": {"type": "string"}, "extensions": {"$ref": "#/$defs/extensions"}}},
  "$defs": {"extensions": {"type": "object", "properties": {"insights": {"type": "array", "maxItems": 1}}}}
}"##;

fn files(list: &[(&str, &str)]) -> FileMap {
    list.iter().copied().collect()
}

/// Asserts that loading has no errors and returns the module.
fn good(list: &[(&str, &str)]) -> Module {
    let loaded = load(&files(list));
    let errors: Vec<_> = loaded
        .report
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    loaded.module.expect("a module")
}

fn accepts(module: &Module, section: Section, value: &Value) -> bool {
    let validator = module
        .contract
        .validator(section)
        .expect("a schema that compiles");
    validator.expect("a section").is_valid(value)
}

#[test]
fn v22_module_preserves_all_source_fields() {
    let module = good(&[
        ("module.yaml", V22),
        ("prompt.md", "Simplify $INPUT."),
        ("schema.json", SCHEMA),
        ("tests/a.input.json", "{}"),
        ("tests/a.expected.json", "{}"),
        ("assets/logo.png", "png"),
    ]);
    assert_eq!(module.format, Format::V2_2);
    assert_eq!(module.manifest.tier, Tier::Decision);
    assert_eq!(module.source["x-own"], json!({"kept": [1, 2]}));
    assert_eq!(module.tests.len(), 1);
    assert_eq!(module.tests[0].name, "a");
    assert_eq!(module.assets[0].path, "assets/logo.png");
    assert!(accepts(
        &module,
        Section::Data,
        &json!({"rationale": "r", "extensions": {"insights": [1]}})
    ));
    assert!(!accepts(
        &module,
        Section::Data,
        &json!({"rationale": "r", "extensions": {"insights": [1, 2]}})
    ));
}

#[test]
fn io_pointer_into_another_file_resolves_its_references() {
    let manifest =
        "name: a\nversion: 1.0.0\nresponsibility: r\nio:\n  input: schemas/in.json#/definitions/top\n";
    let input = r##"{"definitions": {"top": {"type": "object", "properties": {"n": {"$ref": "#/definitions/n"}}},
        "n": {"type": "integer"}}}"##;
    let module = good(&[
        ("module.yaml", manifest),
        ("prompt.md", "p"),
        ("schema.json", SCHEMA),
        ("schemas/in.json", input),
    ]);
    assert!(accepts(&module, Section::Input, &json!({"n": 1})));
    assert!(!accepts(&module, Section::Input, &json!({"n": "one"})));
}

#[test]
fn v1_module_has_front_matter_and_body() {
    let text = "---\r\nname: my-module\r\nversion: 1.0.0\r\nresponsibility: r\r\ncontext: fork\r\n\
        constraints:\r\n  no_network: true\r\n  require_confidence: true\r\n---\r\n# Title\r\nDo it.\r\n";
    let schema = r#"{"input": {"type": "object"}, "output": {"type": "object", "required": ["result"]}}"#;
    let module = good(&[
        ("MODULE.md", text),
        ("schema.json", schema),
        ("examples/input.json", "{}"),
        ("examples/output.json", "{}"),
    ]);
    assert_eq!(module.format, Format::V1);
    assert_eq!(module.prompt, "# Title\r\nDo it.\r\n");
    assert_eq!(module.manifest.context.mode, ContextMode::Fork);
    assert!(module.manifest.constraints.require_confidence);
    assert_eq!(module.manifest.policies.access("network"), Access::Deny);
    assert_eq!(module.contract.pointer(Section::Data), Some("/output"));
    assert!(!accepts(&module, Section::Data, &json!({})));
    assert_eq!(module.tests[0].input, "examples/input.json");
}

#[test]
fn v0_contract_is_built_from_two_schema_files() {
    let output = r##"{"$id": "https://x/y", "type": "object", "required": ["result"],
        "properties": {"result": {"$ref": "#/definitions/r"}}, "definitions": {"r": {"type": "string"}}}"##;
    let module = good(&[
        (
            "module.md",
            "---\nname: old-one\nversion: 0.1.0\nresponsibility: r\n---\nText.\n",
        ),
        ("input.schema.json", r#"{"type": "object"}"#),
        ("output.schema.json", output),
        (
            "constraints.yaml",
            "operational:\n  no_external_network: true\noutput_quality:\n  require_rationale: true\n",
        ),
        ("prompt.txt", "Do it."),
        ("examples/input.json", "{}"),
        ("examples/output.json", "{}"),
    ]);
    assert_eq!(module.format, Format::V0);
    assert_eq!(module.prompt, "Do it.");
    assert!(module.manifest.constraints.no_network);
    assert!(module.manifest.constraints.require_rationale);
    assert!(accepts(&module, Section::Data, &json!({"result": "x"})));
    assert!(!accepts(&module, Section::Data, &json!({"result": 1})));
    assert_eq!(module.tests.len(), 1);
}

#[test]
fn v0_module_without_front_matter_loads() {
    let module = good(&[
        (
            "module.md",
            "# Old\n\n- **Name**: old-one\n- **Version**: 0.1.0\n- Responsibility: does it\n",
        ),
        ("input.schema.json", "{}"),
        ("output.schema.json", "{}"),
        ("prompt.txt", "Do it."),
    ]);
    assert_eq!(module.name(), "old-one");
    assert_eq!(module.manifest.responsibility, "does it");
}

#[test]
fn output_is_an_alias_for_data() {
    let with = |manifest: &str, schema: &str| {
        let module = good(&[
            ("module.yaml", manifest),
            ("prompt.md", "p"),
            ("schema.json", schema),
        ]);
        module.contract.pointer(Section::Data).map(String::from)
    };
    let plain = "name: a\nversion: 1.0.0\nresponsibility: r\n";
    let alias = "name: a\nversion: 1.0.0\nresponsibility: r\ncompat: {schema_output_alias: output}\n";
    let both = r#"{"input": {}, "data": {}, "output": {}}"#;
    assert_eq!(
        with(plain, r#"{"input": {}, "output": {}}"#).as_deref(),
        Some("/output")
    );
    assert_eq!(with(plain, both).as_deref(), Some("/data"));
    assert_eq!(with(alias, both).as_deref(), Some("/output"));
}

#[test]
fn tests_are_discovered_if_none_are_listed() {
    let module = good(&[
        ("module.yml", "name: a\nversion: 1.0.0\nresponsibility: r\n"),
        ("prompt.md", "p"),
        ("schema.json", r#"{"input": {}, "data": {}}"#),
        ("tests/one.input.json", "{}"),
        ("tests/one.expected.json", "{}"),
        ("tests/alone.input.json", "{}"),
    ]);
    let names: Vec<_> = module.tests.iter().map(|test| test.name.as_str()).collect();
    assert_eq!(names, ["one"]);
}

/// Values that can be expressed in YAML written as JSON.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[ -~]{0,12}".prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("[a-z_]{1,8}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn unknown_fields_are_preserved(key in "x-[a-z0-9_]{1,12}", value in values()) {
        let text = format!(
            "name: a\nversion: 1.0.0\nresponsibility: r\n{key}: {}\n",
            serde_json::to_string(&value).expect("JSON")
        );
        let module = good(&[
            ("module.yaml", &text),
            ("prompt.md", "p"),
            ("schema.json", r#"{"input": {}, "data": {}}"#),
        ]);
        prop_assert_eq!(&module.source[&key], &value);
    }
}
