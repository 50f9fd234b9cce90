//! `cogn explain`, and the pages of the error reference: one per code, consistent with the registries.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Output;

use assert_cmd::Command;
use module::Code;
use module::code::{PENDING, Recoverable};
use module::diagnostic::Rule;
use serde_json::Value;

fn cogn(args: &[&str]) -> Output {
    let mut command = Command::cargo_bin("cogn").unwrap();
    command.args(args).output().unwrap()
}

fn stdout(args: &[&str]) -> String {
    let output = cogn(args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn pages() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors")
}

fn page(code: &str) -> String {
    let path = pages().join(format!("{code}.md"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("no page for {code}: {error}"))
}

#[test]
fn codes_and_pages_match_one_to_one() {
    let codes: BTreeSet<String> = Code::all()
        .map(Code::as_str)
        .chain(Rule::all().map(Rule::code))
        .map(String::from)
        .collect();
    let files: BTreeSet<String> = fs::read_dir(pages())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .map(|name| String::from(name.strip_suffix(".md").unwrap_or(&name)))
        .collect();
    let apart: Vec<_> = codes.symmetric_difference(&files).collect();
    assert!(apart.is_empty(), "code or page missing: {apart:?}");
}

#[test]
fn pages_of_pending_codes_name_the_missing_capability() {
    for (code, capability) in PENDING {
        let text = page(code.as_str());
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let note = format!("This version never emits the code; it requires {capability}.");
        assert!(text.contains(&note), "{code}");
    }
}

#[test]
fn pages_agree_with_registries() {
    for code in Code::all() {
        let text = page(code.as_str());
        assert!(text.starts_with(&format!("# {code} {}\n", code.name())), "{code}");
        if code.is_warning() {
            continue;
        }
        let recoverable = match code.recoverable() {
            Recoverable::Yes => "yes",
            Recoverable::No => "no",
            Recoverable::Depends => "depends",
        };
        for fact in [
            format!("\n- HTTP status: {}\n", code.http_status()),
            format!("\n- Recoverable: {recoverable}"),
            String::from("\n- Details: "),
        ] {
            assert!(text.contains(&fact), "{code}: {fact}");
        }
    }
    for rule in Rule::all() {
        let text = page(rule.code());
        assert!(text.starts_with(&format!("# {rule} {}\n", rule.name())), "{rule}");
        let severity = format!("\n- Severity: {}\n", rule.severity().as_str());
        assert!(text.contains(&severity), "{rule}: {severity}");
    }
}

#[test]
fn every_page_has_cause_example_and_fix() {
    for code in Code::all().map(Code::as_str).chain(Rule::all().map(Rule::code)) {
        let text = page(code);
        let parts: Vec<_> = ["## What happened\n\n", "## Example\n\n", "## How to fix it\n\n"]
            .iter()
            .map(|heading| {
                text.find(heading)
                    .unwrap_or_else(|| panic!("{code} lacks {heading}"))
            })
            .collect();
        assert!(parts.is_sorted(), "{code}");
        assert_eq!(text.matches("```").count() % 2, 0, "{code}: a fence stays open");
    }
}

#[test]
fn every_page_is_in_the_binary() {
    for code in Code::all().map(Code::as_str).chain(Rule::all().map(Rule::code)) {
        // One process per code would take too long. The list below runs a sample; compiling the table has
        // already read every file, so only a missing row of the table could go undetected.
        let table = include_str!("../../src/error_pages.rs");
        assert!(
            table.contains(&format!(" {code}")),
            "{code} is missing in pages.rs"
        );
    }
}

#[test]
fn codes_are_found_by_number_and_name_case_insensitively() {
    let samples = [
        ("E1000", "# E1000 PARSE_ERROR"),
        ("e1000", "# E1000 PARSE_ERROR"),
        ("PARSE_ERROR", "# E1000 PARSE_ERROR"),
        ("parse-error", "# E1000 PARSE_ERROR"),
        ("SCHEMA_VALIDATION_FAILED", "# E3001 OUTPUT_SCHEMA_VIOLATION"),
        ("W4010", "# W4010 STREAMING_UNAVAILABLE"),
        ("SESSION_RESTARTED", "# W4013 SESSION_RESTARTED"),
        ("M3005", "# M3005 remote-reference"),
        ("m3005", "# M3005 remote-reference"),
        ("remote-reference", "# M3005 remote-reference"),
        ("REMOTE_REFERENCE", "# M3005 remote-reference"),
    ];
    for (asked, title) in samples {
        let text = stdout(&["explain", asked]);
        assert!(
            text.starts_with(title.trim_start_matches("# ")),
            "{asked}: {text}"
        );
        let json: Value = serde_json::from_str(&stdout(&["explain", asked, "--json"])).unwrap();
        assert!(json["page"].as_str().unwrap().starts_with(title), "{asked}");
    }
}

#[test]
fn unknown_code_suggests_similar_codes() {
    let output = cogn(&["explain", "E1099"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr.contains("unknown code `E1099`") && stderr.contains("did you mean E1"),
        "{stderr}"
    );

    let stderr = String::from_utf8(cogn(&["explain", "remote-refrence"]).stderr).unwrap();
    assert!(stderr.contains("did you mean remote-reference"), "{stderr}");

    let stderr = String::from_utf8(cogn(&["explain", "E5001"]).stderr).unwrap();
    assert!(stderr.contains("error_codes"), "{stderr}");
}

#[test]
fn without_code_all_are_listed() {
    let text = stdout(&["explain"]);
    let json: Vec<Value> = serde_json::from_str(&stdout(&["explain", "--json"])).unwrap();
    assert_eq!(text.lines().count(), Code::all().count() + Rule::all().count());
    assert_eq!(json.len(), text.lines().count());
    assert!(json.iter().all(|entry| entry.get("page").is_none()));
}

#[test]
fn page_is_plain_in_pipe_and_coloured_on_request() {
    let plain = stdout(&["explain", "E3001"]);
    assert!(
        !plain.contains('\u{1b}') && !plain.contains("```") && !plain.contains("## "),
        "{plain}"
    );
    assert!(plain.contains("\n    {\"ok\": true"), "code is indented: {plain}");
    let coloured = stdout(&["explain", "E3001", "--color", "always"]);
    assert!(coloured.contains('\u{1b}'));
}
