//! Snapshots of complete envelopes, so that changes of the public form are visible in review.

use serde_json::json;

use crate::envelope_sample::{check, decision, exec, insights, module, old, reply, schema};

#[test]
fn repaired_answers() {
    let changes = json!([{"type": {"custom": "inline", "reason": "shorter"}, "risk": "medium"}]);
    let answer = reply(&[
        (
            "/meta",
            json!({"confidence": 1.7, "risk": " LOW", "model": "me", "tone": "calm"}),
        ),
        ("/data/changes", changes),
        ("/data/extensions", insights(1)),
        ("/_emitted_context", json!({"seen": 3})),
    ]);
    insta::assert_json_snapshot!("repaired", check(decision(), answer));
    let unsure = reply(&[
        ("/meta/confidence", json!(0.2)),
        ("/meta/confidence_aggregation", json!("min")),
        ("/data/objects", json!([{"confidence": 0.4}])),
    ]);
    insta::assert_json_snapshot!("unsure_decision", check(decision(), unsure));
    insta::assert_json_snapshot!(
        "wrapped",
        check(old(), r#"{"confidence": 0.8, "rationale": "seen", "label": "a"}"#)
    );
}

#[test]
fn refused_answers() {
    let wrong = reply(&[
        ("/data/score", json!("x")),
        ("/data/kind", json!("c")),
        ("/extra", json!(1)),
    ]);
    insta::assert_json_snapshot!("schema_violation", check(decision(), wrong));
    insta::assert_json_snapshot!(
        "low_confidence",
        check(exec(), reply(&[("/meta/confidence", json!(0.8))]))
    );
    insta::assert_json_snapshot!(
        "too_risky",
        check(exec(), reply(&[("/meta/risk", json!("high"))]))
    );
    insta::assert_json_snapshot!(
        "no_rationale",
        check(decision(), reply(&[("/data/rationale", json!(null))]))
    );
    insta::assert_json_snapshot!(
        "overflow",
        check(decision(), reply(&[("/data/extensions", insights(6))]))
    );
    insta::assert_json_snapshot!("bare_object", check(decision(), r#"{"rationale": "r"}"#));
    let cut = r#"{"ok": true, "meta": {"confidence": 0.9}, "data": {"rationale": "whole", "code": "half"#;
    insta::assert_json_snapshot!("truncated", check(decision(), cut));
    insta::assert_json_snapshot!("prose", check(decision(), "I cannot help with that."));
}

#[test]
fn failures_of_the_model() {
    let known = json!({"ok": false, "error": {"code": "BEHAVIOR_CHANGE_REQUIRED", "message": "order matters"}, "partial_data": {"done": 1}});
    insta::assert_json_snapshot!("legacy_code", check(decision(), known.to_string()));
    let unknown = json!({"ok": false, "error": {"code": "TOO_HARD", "message": "too hard"}});
    insta::assert_json_snapshot!("unknown_code", check(decision(), unknown.to_string()));
    let declared = module(
        "tier: decision\nerror_codes: {E5001: the picture is empty}\n",
        &schema(),
    );
    let own = json!({"ok": false, "error": {"code": "E5001", "message": "nothing to see"}});
    insta::assert_json_snapshot!("module_code", check(&declared, own.to_string()));
    let broken = json!({"ok": false, "error": {"message": "no code"}, "data": {"rationale": "r"}});
    insta::assert_json_snapshot!("broken_failure", check(decision(), broken.to_string()));
}
