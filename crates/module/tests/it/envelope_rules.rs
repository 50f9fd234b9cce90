//! Answers that are accepted, repaired and rejected, rule by rule.

use module::envelope::{CheckOptions, Profile, RuntimeMeta, check_reply, check_structure};
use serde_json::{Value, json};

use crate::envelope_sample::{check, code, decision, exec, insights, module, repairs, reply, schema};

/// One change to a valid answer (pointer and JSON; `null` removes), and the expected result.
const CHANGES: &[(&str, &str, &str)] = &[
    ("/data/own", "1", "ok"),
    ("/version", r#""2.2""#, "ok"),
    ("/data/rationale", "null", "E3003"),
    ("/data/rationale", r#"" \n""#, "E3003"),
    ("/data/rationale", "3", "E3003"),
    ("/meta/risk", r#""critical""#, "E3001"),
    ("/meta/risk", "2", "E3001"),
    (
        "/meta/risk",
        r#"{"custom": "legal", "reason": "not offered"}"#,
        "E3001",
    ),
    ("/meta/risk", r#"{"custom": "legal"}"#, "E3001"),
    ("/meta/confidence", r#""0.9""#, "E3001"),
    ("/meta/explain", "[]", "E3001"),
    ("/meta", r#""sure""#, "E3001"),
    ("/data/extensions", r#"{"insights": [{"text": "t"}]}"#, "E3001"),
    (
        "/data/extensions",
        r#"{"insights": [{"text": "t", "suggested_mapping": " "}]}"#,
        "E3001",
    ),
    ("/data/extensions", r#"{"insights": {}}"#, "E3001"),
    ("/data/extensions", r#"{"more": 1}"#, "E3001"),
    ("/data/score", r#""high""#, "E3001"),
    ("/data/kind", r#""c""#, "E3005"),
    ("/data/changes", r#"[{"type": "remove"}]"#, "ok"),
    ("/data/changes", r#"[{"type": "invent"}]"#, "E3005"),
    (
        "/data/changes",
        r#"[{"type": {"custom": "inline", "reason": "shorter"}}]"#,
        "ok",
    ),
    (
        "/data/changes",
        r#"[{"type": {"custom": "", "reason": "r"}}]"#,
        "E3005",
    ),
    (
        "/data/changes",
        r#"[{"type": {"custom": "12345678901234567890123456789012", "reason": "r"}}]"#,
        "ok",
    ),
    (
        "/data/changes",
        r#"[{"type": {"custom": "123456789012345678901234567890123", "reason": "r"}}]"#,
        "E3005",
    ),
    ("/data/changes", r#"[{"type": {"custom": "inline"}}]"#, "E3005"),
    ("/data/changes", r#"[{"type": 7}]"#, "E3005"),
    ("/data", "null", "E3001"),
    ("/data", "[1]", "E3001"),
    ("/error", r#"{"code": "E1001", "message": "no"}"#, "E3001"),
    ("/partial_data", "{}", "E3001"),
    ("/result", "1", "E3001"),
    ("/ok", "null", "E3001"),
    ("/ok", r#""yes""#, "E3001"),
];

/// Replies without an answer.
const REPLIES: &[(&str, &str)] = &[
    ("[1, 2]", "E3001"),
    ("42", "E3001"),
    ("\"hello\"", "E3001"),
    ("", "E1000"),
    (" \n\t", "E1000"),
    ("I am sorry, I cannot do that.", "E1000"),
    (r#"{"ok": tru, "meta": {}}"#, "E1000"),
    (r#"{ok: true, data: {"rationale": "r"}}"#, "E1000"),
    (r#"{'ok': true, 'data': {"rationale": "r"}}"#, "E1000"),
];

#[test]
fn faults_get_their_codes() {
    for (pointer, change, expected) in CHANGES {
        let change: Value = serde_json::from_str(change).unwrap();
        let value = check(decision(), reply(&[(pointer, change.clone())]));
        assert_eq!(code(&value), *expected, "{pointer} {change}: {value:#}");
    }
    for (count, expected) in [(0, "ok"), (5, "ok"), (6, "E3004"), (12, "E3004"), (21, "E3004")] {
        let value = check(decision(), reply(&[("/data/extensions", insights(count))]));
        assert_eq!(code(&value), expected, "{count} insights");
    }
    for (text, expected) in REPLIES {
        let value = check(decision(), text);
        assert_eq!(code(&value), *expected, "{text}");
        assert_eq!(value["meta"]["confidence"], 0.0);
        assert_eq!(value["meta"]["risk"], "high");
    }
    let two = reply(&[("/data/kind", json!("c")), ("/data/score", json!("x"))]);
    assert_eq!(code(&check(decision(), two)), "E3001");
}

#[test]
fn data_of_rejected_answer_becomes_partial_data_if_allowed() {
    let bad = reply(&[("/data/score", json!("x"))]);
    let value = check(decision(), &bad);
    assert_eq!(
        value["partial_data"],
        json!({"rationale": "because", "score": "x"})
    );
    assert_eq!(value["error"]["details"]["errors"][0]["pointer"], "/data/score");
    assert_eq!(value["error"]["details"]["errors"][0]["keyword"], "type");
    assert!(
        value["error"]["suggestion"]
            .as_str()
            .unwrap()
            .contains("/data/score")
    );
    let strict = module("tier: decision\nfailure: {partial_allowed: false}\n", &schema());
    assert!(check(&strict, &bad).get("partial_data").is_none());
    assert!(
        check(&strict, r#"{"ok": true, "data": {"rationale": "r", "#)
            .get("partial_data")
            .is_none()
    );
}

#[test]
fn errors_are_listed_up_to_a_limit() {
    let changes: Vec<Value> = (0..50).map(|_| json!({"risk": 1})).collect();
    let value = check(decision(), reply(&[("/data/changes", json!(changes))]));
    let details = &value["error"]["details"];
    assert_eq!(details["errors"].as_array().unwrap().len(), 20);
    assert_eq!(details["errors_complete"], false);
}

/// One change to a valid answer, the affected field of meta, its value afterwards, and the recorded repair.
const REPAIRS: &[(&str, &str, &str, &str)] = &[
    ("/meta/confidence", "null", "0.5", "/meta/confidence filled"),
    ("/meta/confidence", "1.7", "1.0", "/meta/confidence clamped"),
    ("/meta/confidence", "-3", "0.0", "/meta/confidence clamped"),
    ("/meta/confidence", "1", "1.0", ""),
    ("/meta/risk", "null", r#""medium""#, "/meta/risk filled"),
    ("/meta/risk", r#"" LOW\n""#, r#""low""#, "/meta/risk normalised"),
    ("/meta/explain", "null", r#""because""#, "/meta/explain filled"),
    (
        "/meta/explain",
        r#"" hi ""#,
        r#""hi""#,
        "/meta/explain normalised",
    ),
    ("/meta/explain", r#""""#, r#""""#, ""),
];

#[test]
fn meta_is_repaired_and_every_repair_is_recorded() {
    let checked = |pointer: &str, change: Value, expected: Value, record: &str| {
        let value = check(decision(), reply(&[(pointer, change.clone())]));
        assert_eq!(
            value.pointer(pointer),
            Some(&expected),
            "{pointer} {change}: {value:#}"
        );
        let records: Vec<&str> = Some(record)
            .filter(|record| !record.is_empty())
            .into_iter()
            .collect();
        assert_eq!(repairs(&value), records, "{pointer} {change}");
    };
    for (pointer, change, expected, record) in REPAIRS {
        let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        checked(pointer, parse(change), parse(expected), record);
    }
    let cut = json!(format!("{}...", "é".repeat(277)));
    checked(
        "/meta/explain",
        json!("é".repeat(281)),
        cut,
        "/meta/explain truncated",
    );
    checked(
        "/meta/explain",
        json!("é".repeat(280)),
        json!("é".repeat(280)),
        "",
    );
    let value = check(
        decision(),
        reply(&[("/data/changes", json!([{"risk": "none"}, {"risk": "high"}]))]),
    );
    assert_eq!(value["meta"]["risk"], "high");
    let record = json!([{"pointer": "/meta/risk", "action": "escalated", "before": "low", "after": "high"}]);
    assert_eq!(value["meta"]["repairs"], record);
}

#[test]
fn missing_meta_is_filled_from_rationale() {
    let rationale = "r".repeat(300);
    let value = check(
        decision(),
        json!({"ok": true, "data": {"rationale": rationale}}).to_string(),
    );
    assert_eq!(value["meta"]["confidence"], 0.5);
    assert_eq!(value["meta"]["risk"], "medium");
    assert_eq!(value["meta"]["explain"], "r".repeat(200));
    assert_eq!(value["data"]["rationale"], rationale);
}

#[test]
fn runtime_fields_from_the_model_are_ignored() {
    let claimed = reply(&[
        ("/meta/model", json!("gpt-99")),
        ("/meta/latency_ms", json!(-1)),
        ("/meta/repairs", json!("none")),
        ("/_usage", json!({"total": 0})),
        ("/_emitted_context", json!({"kept": true})),
    ]);
    let facts = RuntimeMeta {
        model: Some(String::from("local/tiny")),
        processing_time_ms: Some(12),
        ..RuntimeMeta::default()
    };
    let options = CheckOptions {
        facts,
        ..CheckOptions::default()
    };
    let value = check_reply(decision(), claimed.as_bytes(), &options)
        .envelope
        .into_value();
    assert_eq!(value["meta"]["model"], "local/tiny");
    assert_eq!(value["meta"]["processing_time_ms"], 12);
    assert_eq!(value["meta"]["latency_ms"], 12);
    assert_eq!(value["_emitted_context"], json!({"kept": true}));
    assert!(value.get("_usage").is_none());
    let removed = [
        "/_usage removed",
        "/meta/model removed",
        "/meta/latency_ms removed",
        "/meta/repairs removed",
    ];
    assert_eq!(repairs(&value), removed);
    assert_eq!(value["meta"]["repairs"][1]["before"], "gpt-99");
}

#[test]
fn exec_requires_high_confidence_and_low_risk() {
    let module = exec();
    assert_eq!(code(&check(module, reply(&[]))), "ok");
    let unsure = check(module, reply(&[("/meta/confidence", json!(0.89))]));
    assert_eq!(code(&unsure), "E3001");
    let details =
        json!({"reason": "low_confidence", "related_code": "E2001", "threshold": 0.9, "actual": 0.89});
    assert_eq!(unsure["error"]["details"], details);
    assert_eq!(unsure["partial_data"], json!({"rationale": "because"}));
    for risk in ["medium", "high"] {
        let risky = check(module, reply(&[("/meta/risk", json!(risk))]));
        assert_eq!(code(&risky), "E3006");
        assert_eq!(risky["partial_data"], json!({"rationale": "because"}));
    }
    let escalated = check(module, reply(&[("/data/changes", json!([{"risk": "medium"}]))]));
    assert_eq!(code(&escalated), "E3006");
    // Tier exec: an invalid number is not repaired.
    assert_eq!(
        code(&check(module, reply(&[("/meta/confidence", json!(1.7))]))),
        "E3001"
    );
    assert_eq!(
        code(&check(module, reply(&[("/meta/confidence", json!(null))]))),
        "E3001"
    );
    assert_eq!(
        code(&check(module, reply(&[("/data/extensions", insights(1))]))),
        "E3004"
    );
}

#[test]
fn low_confidence_decision_is_flagged_and_exploration_is_not() {
    let unsure = reply(&[("/meta/confidence", json!(0.4))]);
    let value = check(decision(), &unsure);
    assert_eq!(value["_warnings"][0]["code"], "W2001");
    assert!(
        check(&module("tier: exploration\n", &schema()), &unsure)
            .get("_warnings")
            .is_none()
    );
    // A default tier has no gate.
    assert!(
        check(&module("policies: {network: deny}\n", &schema()), &unsure)
            .get("_warnings")
            .is_none()
    );
}

#[test]
fn optional_confidence_fields_are_validated_and_unchanged() {
    let good = [
        (
            "/meta/generation_quality",
            json!({"prompt_adherence": 0.85, "aesthetic_score": 1, "own": "x"}),
        ),
        (
            "/meta/temporal_confidence",
            json!({
                "overall": 0.89,
                "segments": [{"start_ms": 0, "end_ms": 5000, "confidence": 0.95}],
                "low_confidence_regions": [{"start_ms": 5000, "end_ms": 7000, "reason": "background_noise"}]
            }),
        ),
    ];
    let value = check(decision(), reply(&good));
    for (pointer, expected) in &good {
        assert_eq!(value.pointer(pointer), Some(expected));
    }
    let bad = [
        ("/meta/generation_quality", json!({"prompt_adherence": 1.2})),
        ("/meta/generation_quality", json!(0.5)),
        ("/meta/confidence_aggregation", json!("median")),
        ("/meta/temporal_confidence", json!({"overall": -1})),
        (
            "/meta/temporal_confidence",
            json!({"segments": [{"start_ms": 9, "end_ms": 5, "confidence": 0.5}]}),
        ),
        (
            "/meta/temporal_confidence",
            json!({"segments": [{"start_ms": 0, "end_ms": 5}]}),
        ),
        ("/meta/temporal_confidence", json!({"segments": {}})),
    ];
    for change in bad {
        assert_eq!(
            code(&check(decision(), reply(std::slice::from_ref(&change)))),
            "E3001",
            "{change:?}"
        );
    }
}

#[test]
fn aggregated_confidence_is_recomputed() {
    let with = |method: &str, confidence: f64| {
        let objects = json!([
            {"confidence": 0.95, "weight": 1}, {"confidence": 0.88, "weight": 1}, {"confidence": 0.78, "weight": 2}
        ]);
        let value = check(
            decision(),
            reply(&[
                ("/meta/confidence_aggregation", json!(method)),
                ("/meta/confidence", json!(confidence)),
                ("/data/analysis", json!({"objects": objects})),
            ]),
        );
        value["_warnings"][0]["code"].as_str().map(String::from)
    };
    assert_eq!(with("mean", 0.87), None);
    assert_eq!(with("min", 0.78), None);
    assert_eq!(with("weighted_mean", 0.8475), None);
    let mismatch = Some(String::from("W3001"));
    assert_eq!(with("mean", 0.95), mismatch);
    assert_eq!(with("min", 0.87), mismatch);
    assert_eq!(with("weighted_mean", 0.87), mismatch);
    let nothing = reply(&[("/meta/confidence_aggregation", json!("mean"))]);
    assert!(check(decision(), nothing).get("_warnings").is_none());
}

#[test]
fn cep_profile_starts_with_version() {
    let outcome = check_reply(decision(), reply(&[]).as_bytes(), &CheckOptions::default());
    let value = outcome.envelope.into_profile(Profile::Cep22);
    assert!(check_structure(&value, Profile::Cep22).is_empty());
    assert!(value.to_string().starts_with(r#"{"version":"2.2","ok":true"#));
}
