//! Examples of the format document. Its fences are lost and its YAML is flattened, so blocks are detected by
//! their form, and nesting is restored from the list of top-level manifest keys.

use module::document::parse_yaml;
use module::envelope::{Profile, check_structure};
use module::manifest::{EnumStrategy, FailureContract, OutputAlias, Tier};
use module::schema::{Contract, Section};
use module::{FileMap, Format, load};
use serde_json::{Value, json};

use super::json_value;

const TEXT: &str = include_str!("../../fixtures/documents/formats.zh.md");

#[derive(Clone, Copy, Debug)]
enum Kind {
    Envelope,
    Schema,
    /// One property of a schema: an extensible enum.
    ExtensibleEnum,
}

/// Every object whose brace is alone on a line, in order.
const OBJECTS: &[Kind] = &[Kind::Envelope, Kind::Envelope, Kind::Schema, Kind::ExtensibleEnum];

/// Top-level keys of a manifest in this document; every other key is nested under the one above it.
const TOP_KEYS: &[&str] = &[
    "name",
    "version",
    "responsibility",
    "tier",
    "schema_strictness",
    "excludes",
    "policies",
    "tools",
    "overflow",
    "enums",
    "failure",
    "runtime_requirements",
    "io",
    "compat",
    "tests",
    "constraints",
];

fn objects() -> Vec<String> {
    let mut objects = Vec::new();
    let mut open: Option<(String, i64)> = None;
    for line in TEXT.lines() {
        if open.is_none() && line == "{" {
            open = Some((String::new(), 0));
        }
        if let Some((text, depth)) = &mut open {
            text.push_str(line);
            text.push('\n');
            *depth += depth_of(line);
            if *depth == 0 {
                objects.push(std::mem::take(text));
                open = None;
            }
        }
    }
    assert!(open.is_none(), "an object is never closed");
    objects
}

/// Opening minus closing braces; no string of this document contains a brace.
fn depth_of(line: &str) -> i64 {
    line.chars()
        .map(|letter| match letter {
            '{' => 1,
            '}' => -1,
            _ => 0,
        })
        .sum()
}

/// Runs of lines that look like YAML and contain at least two keys.
fn yaml_runs() -> Vec<Vec<&'static str>> {
    let mut runs: Vec<Vec<&str>> = vec![Vec::new()];
    for line in TEXT.lines() {
        let looks_like = key_of(line).is_some() || line.starts_with(['#', '-']);
        match runs.last_mut() {
            Some(run) if looks_like => run.push(line),
            _ => runs.push(Vec::new()),
        }
    }
    let keys = |run: &[&str]| run.iter().filter(|line| key_of(line).is_some()).count();
    runs.into_iter().filter(|run| keys(run) >= 2).collect()
}

fn key_of(line: &str) -> Option<&str> {
    let (key, rest) = line.split_once(':')?;
    let is_key = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit());
    (is_key && (rest.is_empty() || rest.starts_with(' '))).then_some(key)
}

fn restore_indentation(lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines {
        let top = line.starts_with('#') || key_of(line).is_some_and(|key| TOP_KEYS.contains(&key));
        if !top {
            text.push_str("  ");
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// `module.yaml` of v2.2.
fn manifest() -> String {
    restore_indentation(&yaml_runs()[0])
}

/// The keys between the two `---` of `MODULE.md`.
fn front_matter() -> String {
    let runs = yaml_runs();
    let lines = runs[1].split(|line| *line == "---").find(|part| part.len() > 2);
    restore_indentation(lines.expect("front matter"))
}

/// From one line to the next, both exclusive.
fn between(first: &str, last: &str) -> &'static str {
    let (_, after) = TEXT
        .split_once(&format!("\n{first}\n"))
        .expect("the first line is there");
    let (text, _) = after
        .split_once(&format!("\n{last}\n"))
        .expect("the last line is there");
    text
}

#[test]
fn every_object_matches_its_row() {
    let objects = objects();
    assert_eq!(
        objects.len(),
        OBJECTS.len(),
        "an object came or went: classify it"
    );
    for (text, kind) in objects.iter().zip(OBJECTS) {
        let value = json_value(text);
        match kind {
            Kind::Envelope => assert_eq!(check_structure(&value, Profile::Cognitive), vec![], "{value}"),
            Kind::Schema => {
                let contract = contract(value);
                for section in [Section::Input, Section::Data, Section::Meta, Section::Error] {
                    assert!(contract.validator(section).expect("it compiles").is_some());
                }
            }
            Kind::ExtensibleEnum => check_enum(&value),
        }
    }
}

/// Checks the two values that the document calls valid, taken from its text, and one invalid value.
fn check_enum(property: &Value) {
    let schema = json!({"data": {"type": "object", "properties": property}});
    let contract = contract(schema);
    let validator = contract
        .validator(Section::Data)
        .expect("it compiles")
        .expect("it is there");
    let line = TEXT
        .lines()
        .find(|line| line.starts_with("\"remove_redundancy\""))
        .expect("the line");
    let (_, custom) = line.split_once("{ ").expect("an object");
    let (custom, _) = custom.split_once(" }").expect("its end");
    let custom: Value = serde_json::from_str(&format!("{{{custom}}}")).expect("JSON");
    assert!(validator.is_valid(&json!({"type": "remove_redundancy"})));
    assert!(validator.is_valid(&json!({"type": custom})));
    assert!(!validator.is_valid(&json!({"type": "invent_something"})));
}

fn contract(document: Value) -> Contract {
    let present: Vec<_> = Section::ALL
        .into_iter()
        .map(|section| (section, format!("/{}", section.as_str())))
        .filter(|(_, pointer)| document.pointer(pointer).is_some())
        .collect();
    Contract::new(document, present)
}

#[test]
fn document_contains_two_manifests() {
    assert_eq!(yaml_runs().len(), 2, "YAML came or went: classify it");
}

#[test]
fn code_simplifier_of_the_document_loads() {
    let manifest = manifest();
    let prompt = between(
        "人类可读的提示词,需包含 v2.2 envelope 说明:",
        "schema.json (v2.2)",
    );
    let schema = objects().remove(2);
    let files: FileMap = [
        ("module.yaml", manifest.as_str()),
        ("prompt.md", prompt),
        ("schema.json", schema.as_str()),
        (
            "tests/case1.input.json",
            r#"{"code": "x = x", "language": "python"}"#,
        ),
        ("tests/case1.expected.json", r#"{"ok": true}"#),
    ]
    .into_iter()
    .collect();
    let loaded = load(&files);
    assert!(!loaded.report.has_errors(), "{:#?}", loaded.report);
    let module = loaded.module.expect("it loads");
    assert_eq!(module.format, Format::V2_2);
    let manifest = &module.manifest;
    assert_eq!(
        (manifest.name.as_str(), manifest.tier),
        ("code-simplifier", Tier::Decision)
    );
    assert_eq!(manifest.excludes.len(), 3);
    assert_eq!(manifest.tools.denied, ["write_file", "shell", "network"]);
    assert_eq!(
        (manifest.overflow.max_items, manifest.enums.strategy),
        (5, EnumStrategy::Extensible)
    );
    assert_eq!(manifest.failure.contract, FailureContract::ErrorUnion);
    assert_eq!(manifest.runtime.max_input_tokens, Some(8000));
    assert_eq!(manifest.io.data.as_deref(), Some("./schema.json#/data"));
    assert!(manifest.compat.accepts_v21_payload && manifest.compat.runtime_auto_wrap);
    assert_eq!(manifest.compat.schema_output_alias, OutputAlias::Data);
    assert_eq!(
        manifest.tests,
        ["tests/case1.input.json -> tests/case1.expected.json"]
    );
}

#[test]
fn v0_module_of_the_document_loads() {
    let front = front_matter();
    let text = format!("---\n{front}---\n# 模块标题\n");
    let schema = r#"{"input": {"type": "object"}, "output": {"type": "object"}}"#;
    let files: FileMap = [("MODULE.md", text.as_str()), ("schema.json", schema)]
        .into_iter()
        .collect();
    let loaded = load(&files);
    assert!(!loaded.report.has_errors(), "{:#?}", loaded.report);
    let module = loaded.module.expect("it loads");
    assert_eq!((module.format, module.name()), (Format::V1, "my-module"));
    assert_eq!(module.manifest.excludes.len(), 2);
    let constraints = &module.manifest.constraints;
    assert!(constraints.no_network && constraints.require_confidence && constraints.require_rationale);
}

/// The restored YAML consists of flat lists and mappings of one level.
#[test]
fn restored_yaml_has_expected_structure() {
    let value = parse_yaml(&manifest()).expect("YAML");
    assert_eq!(value["policies"]["code_execution"], "deny");
    assert_eq!(value["io"]["meta"], "./schema.json#/meta");
    assert_eq!(value.as_object().expect("a mapping").len(), 15);
}
