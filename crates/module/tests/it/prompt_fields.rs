//! Fields that the prompt and the schema do not share.

use module::FileMap;
use module::check::{Strict, check};
use serde_json::json;

/// Code and hint of every diagnostic about fields.
fn found(prompt: &str) -> Vec<(String, String)> {
    let schema = json!({
        "input": {"type": "object", "required": ["text"], "properties": {
            "text": {"type": "string"}, "tone": {"type": "string"}, "kind": {"const": "letter"}
        }},
        "data": {"type": "object", "required": ["rationale"], "properties": {
            "rationale": {"type": "string"},
            "lines": {"type": "array", "items": {"type": "object", "properties": {"amount": {}}}},
            "any": {"type": "object"}
        }}
    });
    let manifest = "name: m\nversion: 1.0.0\nresponsibility: r\ntier: decision\nexcludes: [guessing]\n";
    let files: FileMap = [
        ("module.yaml", String::from(manifest)),
        ("prompt.md", String::from(prompt)),
        ("schema.json", schema.to_string()),
    ]
    .into_iter()
    .collect();
    let report = check(&files, Strict::Standard).report;
    let fields = report
        .iter()
        .filter(|diagnostic| ["M4015", "M4016", "M4017"].contains(&diagnostic.rule.code()));
    fields
        .map(|diagnostic| {
            assert!(diagnostic.location.is_some(), "{diagnostic:?}");
            (
                String::from(diagnostic.rule.code()),
                diagnostic.hint.clone().unwrap_or_default(),
            )
        })
        .collect()
}

#[test]
fn unused_input_fields_are_reported() {
    let codes = |prompt: &str| {
        found(prompt)
            .into_iter()
            .map(|(code, _)| code)
            .collect::<Vec<_>>()
    };
    assert!(codes("Do it.").is_empty());
    assert!(codes("Do it: $INPUT").is_empty());
    assert!(codes("Do it: ${text} ${tone}").is_empty());
    assert_eq!(codes("Do it: ${text}"), ["M4016"]);
    assert_eq!(codes("Do it: ${tone}"), ["M4015"]);
    assert_eq!(codes("Do it: $ARGUMENTS ${tone}"), ["M4015"]);
}

#[test]
fn unknown_answer_fields_are_reported() {
    for fine in [
        "Write `data.rationale` and `data.lines[0].amount`, data.lines.amount.",
        "Write data. Then `data.any.thing`; see {{other.data.result}} and my.data.txt.",
    ] {
        assert!(found(fine).is_empty(), "{fine}: {:?}", found(fine));
    }
    let wrong = found("Write `data.rationnale`, and `data.lines[].sum`.");
    let hint = |index: usize| wrong[index].1.as_str();
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert_eq!(hint(0), "did you mean `rationale`?");
    assert_eq!(hint(1), "the schema has amount");
}
