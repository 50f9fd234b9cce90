//! The examples on the pages of diagnostics cause these diagnostics. An example is a fragment of a manifest,
//! a schema, a prompt or a test; it is inserted into an otherwise valid module at every possible position.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use module::FileMap;
use module::check::{Strict, check};
use module::diagnostic::Rule;
use serde_json::{Map, Value, json};

/// Pages whose examples are prose, because they concern folders, other modules or sizes.
const IN_WORDS: &[&str] = &[
    "M1001", "M1002", "M1003", "M1004", "M1005", "M1006", "M1008", "M1009", "M1010", "M1011", "M1012",
    "M2003", "M2012", "M3002", "M3011", "M4001", "M4008", "M4009", "M4010", "M4012", "M4013", "M4015",
    "M4016", "M5001", "M5002", "M5003", "M5007", "M6010", "M6012", "M6013", "M7003",
];

const MANIFEST: &[(&str, &str)] = &[
    ("name", "name: sorter"),
    ("version", "version: 1.0.0"),
    ("responsibility", "responsibility: sort messages by mood"),
    ("tier", "tier: decision"),
    ("excludes", "excludes: [answering them]"),
    ("overflow", "overflow: {enabled: true, max_items: 5}"),
    ("enums", "enums: {strategy: extensible}"),
    ("response", "response: {mode: both}"),
    ("modalities", "modalities: {input: [text, image], output: [text]}"),
];

const PROMPT: &str = "Sort the message by its mood. Look at the pictures too:\n\n$MEDIA_INPUTS\n\nAnswer with an \
                      envelope: ok, meta with confidence, risk and explain, and data with a rationale.\n";

fn schema() -> Value {
    json!({
        "meta": {
            "type": "object",
            "required": ["confidence", "risk", "explain"],
            "properties": {
                "confidence": {"type": "number", "minimum": 0, "maximum": 1},
                "risk": {"type": "string", "enum": ["none", "low", "medium", "high"]},
                "explain": {"type": "string", "maxLength": 280},
            },
        },
        "input": {
            "type": "object",
            "required": ["text"],
            "properties": {
                "text": {"type": "string"},
                "images": {"type": "array", "items": {"$ref": "#/$defs/MediaInput"}},
            },
        },
        "data": {
            "type": "object",
            "required": ["rationale"],
            "properties": {
                "rationale": {"type": "string"},
                "extensions": {"type": "object", "properties": {"insights": {"type": "array", "maxItems": 5}}},
            },
        },
        "error": {"type": "object", "required": ["code", "message"], "properties": {"code": {"type": "string"}}},
        "$defs": {"MediaInput": {"oneOf": [{"type": "object", "required": ["type", "url"], "properties": {"type": {"const": "url"}, "url": {"type": "string"}}}]}},
    })
}

fn page(code: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/errors/{code}.md"));
    fs::read_to_string(path).unwrap_or_default()
}

/// Language and text of the first block under `## Example`.
fn example(page: &str) -> Option<(String, String)> {
    let section = page.split("## Example\n").nth(1)?.split("\n## ").next()?;
    let block = section.split("```").nth(1)?;
    let (language, text) = block.split_once('\n')?;
    Some((String::from(language), String::from(text)))
}

fn manifest(piece: &str) -> String {
    let keys: BTreeSet<&str> = piece
        .lines()
        .filter(|line| !line.starts_with([' ', '-', '#']))
        .filter_map(|line| line.split(':').next())
        .collect();
    let rest = MANIFEST
        .iter()
        .filter(|(key, _)| !keys.contains(key))
        .map(|(_, line)| *line);
    let rest: Vec<_> = rest.collect();
    format!("{piece}{}\n", rest.join("\n"))
}

fn files(manifest: String, schema: String, prompt: &str) -> FileMap {
    let input = r#"{"text": "Thank you"}"#;
    let expected = r#"{"ok": true, "data": {"rationale": "thanks"}}"#;
    [
        ("module.yaml", manifest),
        ("schema.json", schema),
        ("prompt.md", String::from(prompt)),
        ("tests/one.input.json", String::from(input)),
        ("tests/one.expected.json", String::from(expected)),
    ]
    .into_iter()
    .collect()
}

/// The module with the fragment at every possible position.
fn placed(language: &str, piece: &str) -> Vec<FileMap> {
    let good = || (manifest(""), schema().to_string());
    let (whole, contract) = good();
    match language {
        "yaml" => vec![
            files(String::from(piece), contract.clone(), PROMPT),
            files(manifest(piece), contract.clone(), PROMPT),
            files(manifest(piece), contract, "Sort $MEDIA_INPUTS by mood."),
        ],
        "json" => {
            let mut all = vec![files(whole.clone(), String::from(piece), PROMPT)];
            let mut tested = files(whole.clone(), contract, PROMPT);
            tested.insert(
                "tests/one.input.json",
                module::file_map::Entry::Read(piece.as_bytes().to_vec()),
            );
            all.push(tested);
            let Ok(Value::Object(piece)) = serde_json::from_str::<Value>(piece) else {
                return all;
            };
            all.extend(
                placed_in_schema(&piece)
                    .into_iter()
                    .map(|schema| files(whole.clone(), schema.to_string(), PROMPT)),
            );
            all
        }
        _ => vec![
            files(whole, contract.clone(), piece),
            files(String::from(piece), contract, PROMPT),
            [("MODULE.md", String::from(piece)), ("schema.json", good().1)]
                .into_iter()
                .collect(),
        ],
    }
}

fn placed_in_schema(piece: &Map<String, Value>) -> Vec<Value> {
    let mut sections = schema();
    for (key, value) in piece {
        sections[key] = value.clone();
    }
    let mut all = vec![sections];
    for section in ["data", "meta", "input"] {
        let mut field = schema();
        field[section]["properties"]["piece"] = Value::Object(piece.clone());
        all.push(field);
        let mut fields = schema();
        for (key, value) in piece {
            fields[section]["properties"][key] = value.clone();
        }
        all.push(fields);
    }
    all
}

fn found(files: &FileMap) -> BTreeSet<&'static str> {
    let strict = [Strict::Standard, Strict::V22, Strict::V25];
    let reports = strict.map(|strict| check(files, strict).report);
    reports
        .iter()
        .flat_map(|report| {
            report
                .iter()
                .map(|diagnostic| diagnostic.rule.code())
                .collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn base_module_of_examples_has_no_diagnostics() {
    let good = files(manifest(""), schema().to_string(), PROMPT);
    assert_eq!(found(&good), BTreeSet::new());
}

#[test]
fn examples_cause_diagnostic_of_their_page() {
    let mut wrong = Vec::new();
    for code in Rule::all().map(Rule::code) {
        let caused = example(&page(code)).is_some_and(|(language, piece)| {
            placed(&language, &piece)
                .iter()
                .any(|files| found(files).contains(code))
        });
        if caused == IN_WORDS.contains(&code) {
            wrong.push((code, caused));
        }
    }
    assert!(
        wrong.is_empty(),
        "pages whose example does not cause their diagnostic, or does and is listed: {wrong:?}"
    );
}

/// Examples of malformed media are rejected with the code of the page.
#[test]
fn media_examples_are_rejected_with_code_of_their_page() {
    for code in ["E1002", "E1003", "E1010", "E1013"] {
        let (_, text) = example(&page(code)).unwrap();
        let shown: Value = serde_json::from_str(&text).unwrap();
        let input = match shown.get("images") {
            Some(_) => shown,
            None => json!({"images": [shown]}),
        };
        let test = json!({"expects": "reject", "conformance_level": 4, "error_codes": [code]});
        let report =
            module::conformance::run([(String::from(code), json!({"$test": test, "input": input}))], 4);
        assert!(report.is_good() && report.declares_level == 4, "{report:#?}");
    }
}

/// Complete envelopes on a page are valid, unless the page is about their fault.
#[test]
fn envelopes_on_pages_are_valid() {
    let broken = ["E3001", "E3003"];
    let mut seen = 0;
    for code in module::Code::all().map(module::Code::as_str) {
        for block in page(code)
            .split("```json\n")
            .skip(1)
            .filter_map(|rest| rest.split("```").next().map(String::from))
        {
            let Ok(value) = serde_json::from_str::<Value>(&block) else {
                assert_eq!(code, "E1000", "{block}");
                continue;
            };
            if value.get("ok").is_some() && value.get("meta").is_some() {
                let found = module::envelope::check_structure(&value, module::envelope::Profile::Cognitive);
                assert_eq!(found.is_empty(), !broken.contains(&code), "{code}: {found:?}");
                seen += 1;
            }
        }
    }
    assert!(seen > 4, "{seen}");
}
