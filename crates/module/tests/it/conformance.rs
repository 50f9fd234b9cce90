use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use module::conformance::{ConformanceReport, Outcome, embedded, run};
use proptest::prelude::*;
use serde_json::{Value, json};

fn one(vector: Value) -> ConformanceReport {
    run([(String::from("a/valid/x.json"), vector)], 4)
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("vectors")
}

fn files(folder: &Path, prefix: &str, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            files(&entry.path(), &format!("{name}/"), found);
        } else {
            found.insert(name);
        }
    }
}

#[test]
fn builtin_vectors_all_pass() {
    let report = run(embedded(), 4);
    let failed: Vec<_> = report
        .vectors
        .iter()
        .filter(|row| row.outcome != Outcome::Passed)
        .map(|row| {
            format!(
                "{}: {:?} {}",
                row.path,
                row.codes,
                row.reason.as_deref().unwrap_or_default()
            )
        })
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(
        report.problems.is_empty() && report.ignored.is_empty(),
        "{:?}",
        report.problems
    );
    assert_eq!(report.declares_level, 4);
    assert!(report.is_good());
}

#[test]
fn every_level_has_accepting_and_rejecting_vectors() {
    let report = run(embedded(), 4);
    for level in 1..=4 {
        for expects in ["accept", "reject"] {
            let count = report
                .vectors
                .iter()
                .filter(|row| row.level == level && row.expects == expects)
                .count();
            assert!(
                count >= 3,
                "level {level} has {count} vectors that expect {expects}"
            );
        }
    }
}

#[test]
fn every_rejecting_vector_names_a_code() {
    for (path, vector) in embedded() {
        if vector["$test"]["expects"] == "reject" {
            assert!(vector["$test"]["error_codes"].is_array(), "{path}");
        }
    }
}

#[test]
fn embedded_vectors_match_the_folder() {
    let mut on_disk = BTreeSet::new();
    files(&folder(), "", &mut on_disk);
    let inside: BTreeSet<_> = embedded().map(|(path, _)| path).collect();
    assert_eq!(on_disk, inside);
}

#[test]
fn level_includes_lower_levels_only() {
    let report = run(embedded(), 2);
    assert!(report.vectors.iter().all(|row| row.level <= 2));
    assert!(report.vectors.iter().any(|row| row.level == 1));
    assert_eq!(report.declares_level, 2);
}

/// The runner must detect failures: each vector with the opposite expectation fails.
#[test]
fn inverted_vectors_fail() {
    for (path, mut vector) in embedded() {
        let turned = match vector["$test"]["expects"].as_str() {
            Some("accept") => "reject",
            _ => "accept",
        };
        vector["$test"]["expects"] = json!(turned);
        let report = run([(path.clone(), vector)], 4);
        assert_eq!(report.vectors.len(), 1, "{path}");
        assert_eq!(report.vectors[0].outcome, Outcome::Failed, "{path}");
        assert!(!report.is_good());
        assert!(report.declares_level < report.vectors[0].level);
    }
}

#[test]
fn rejection_with_another_code_fails() {
    let vector = json!({
        "$test": {"name": "x", "expects": "reject", "conformance_level": 1, "error_codes": ["E1002"]},
        "envelope": {"ok": true},
    });
    let report = one(vector);
    assert_eq!(report.vectors[0].outcome, Outcome::Failed);
    assert!(
        report.vectors[0]
            .reason
            .as_ref()
            .unwrap()
            .contains("not with E1002")
    );
}

#[test]
fn unknown_keys_are_reported_as_problems() {
    let envelope = json!({"ok": true, "meta": {"confidence": 1, "risk": "low", "explain": ""}, "data": {"rationale": ""}});
    let report = one(json!({
        "$test": {"name": "x", "expects": "accept", "conformance_level": 1, "only_if": "windows"},
        "envelope": envelope,
        "setup": {},
    }));
    let messages: Vec<_> = report
        .problems
        .iter()
        .map(|problem| problem.message.as_str())
        .collect();
    assert_eq!(messages, ["unknown key `$test.only_if`", "unknown key `setup`"]);
    assert_eq!(report.vectors[0].outcome, Outcome::Passed);
    assert!(!report.is_good());
}

#[test]
fn malformed_vectors_are_reported_and_not_run() {
    for vector in [
        json!(null),
        json!([1]),
        json!({"$test": 1, "envelope": {}}),
        json!({"$test": {"expects": "maybe", "conformance_level": 1}, "envelope": {}}),
        json!({"$test": {"expects": "accept", "conformance_level": 5}, "envelope": {}}),
        json!({"$test": {"expects": "accept"}, "envelope": {}}),
        json!({"$test": {"expects": "accept", "conformance_level": 1}}),
    ] {
        let report = one(vector.clone());
        assert!(
            report.vectors.is_empty() && !report.problems.is_empty(),
            "{vector}"
        );
        assert_eq!(report.declares_level, 0);
    }
    let report = one(json!({"type": "object"}));
    assert_eq!(report.ignored, ["a/valid/x.json"]);
}

#[test]
fn foreign_kinds_are_not_run() {
    let test = json!({"name": "x", "expects": "accept", "conformance_level": 1});
    for kind in ["registry", "runtime", "core"] {
        let report = one(json!({"$test": test, kind: {}}));
        assert_eq!(report.vectors[0].outcome, Outcome::NotRun);
        assert!(report.vectors[0].reason.as_ref().unwrap().contains(kind));
        assert_eq!(report.declares_level, 0);
        assert!(report.is_good(), "not run is not failed");
    }
    let report = one(json!({"$test": test, "events": [{"type": "start", "version": "2.2"}]}));
    assert_eq!(report.vectors[0].outcome, Outcome::NotRun);
}

/// In a folder where every accepted envelope has `version`, its absence is an error.
#[test]
fn profile_follows_from_vectors_of_the_folder() {
    let envelope = |version: Option<&str>| {
        let mut envelope = json!({"ok": true, "meta": {"confidence": 1, "risk": "low", "explain": ""}, "data": {"rationale": ""}});
        if let Some(version) = version {
            envelope["version"] = json!(version);
        }
        envelope
    };
    let vector = |expects: &str, envelope: Value| json!({"$test": {"expects": expects, "conformance_level": 1}, "envelope": envelope});
    let files = |good: Value| {
        [
            (String::from("s/valid/minimal.json"), vector("accept", good)),
            (
                String::from("s/invalid/missing-version.json"),
                vector("reject", envelope(None)),
            ),
        ]
    };
    assert!(run(files(envelope(Some("2.2"))), 4).is_good());
    assert!(!run(files(envelope(None)), 4).is_good());
}

fn any_json() -> impl Strategy<Value = Value> {
    let keys = prop_oneof![
        3 => proptest::sample::select(vec![
            "$test", "envelope", "input", "events", "module", "manifest", "schema", "name", "expects", "ok", "meta", "data",
            "error", "chunk", "seq", "type", "field", "delta", "final", "progress", "images", "media_type", "url",
            "conformance_level", "category", "checksum", "generated_image",
        ])
        .prop_map(String::from),
        1 => "[a-z_$]{0,6}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        proptest::sample::select(vec![
            "accept",
            "reject",
            "streaming",
            "multimodal",
            "delta",
            "snapshot",
            "url",
            "base64",
            "data.a[0]"
        ])
        .prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(crate::property::cases(200))]

    #[test]
    fn runner_accepts_any_json(value in any_json()) {
        run([(String::from("x"), value)], 4);
    }

    #[test]
    fn runner_accepts_any_subject(
        subject in any_json(),
        module in proptest::option::of(any_json()),
        kind in proptest::sample::select(vec!["envelope", "input", "events"]),
        category in proptest::sample::select(vec!["streaming", "multimodal", "other"]),
    ) {
        let mut vector = json!({
            "$test": {"name": "x", "expects": "accept", "conformance_level": 4, "category": category},
            kind: subject,
        });
        if let Some(module) = module {
            vector["module"] = json!({"manifest": module, "schema": {"data": module, "input": {"type": "object"}}});
        }
        let report = run([(String::from("x"), vector)], 4);
        prop_assert_eq!(report.vectors.len(), 1);
    }
}
