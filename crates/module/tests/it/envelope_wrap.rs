//! Older answers, bare objects, and failures that a model reports itself.

use module::Module;
use serde_json::{Value, json};

use crate::envelope_sample::{check, code, decision, module, old, repairs, reply, schema};

fn lenient() -> Module {
    module("tier: decision\ncompat: {runtime_auto_wrap: true}\n", &schema())
}

#[test]
fn older_answers_are_wrapped_if_the_module_allows_it() {
    let answers = [
        json!({"ok": true, "data": {"rationale": "r", "confidence": 0.8, "changes": [{"risk": "high"}]}}),
        json!({"rationale": "r", "confidence": 0.8, "changes": [{"risk": "high"}]}),
        json!({"data": {"rationale": "r", "confidence": 0.8, "changes": [{"risk": "high"}]}}),
        json!({"ok": true, "rationale": "r", "confidence": 0.8, "changes": [{"risk": "high"}]}),
    ];
    for answer in answers {
        let accepting = module("tier: decision\ncompat: {accepts_v21_payload: true}\n", &schema());
        for module in [&lenient(), old(), &accepting] {
            let value = check(module, answer.to_string());
            let data = json!({"rationale": "r", "confidence": 0.8, "changes": [{"risk": "high"}]});
            assert_eq!(value["data"], data, "{answer}");
            assert_eq!(value["meta"]["confidence"], 0.8, "{answer}");
            assert_eq!(value["meta"]["risk"], "high", "{answer}");
            assert_eq!(value["meta"]["explain"], "r", "{answer}");
            assert_eq!(repairs(&value)[0], " wrapped", "{answer}");
        }
    }
}

#[test]
fn bare_objects_are_rejected_elsewhere_and_become_partial_data() {
    let value = check(decision(), r#"{"rationale": "r"}"#);
    assert_eq!(code(&value), "E3001");
    assert_eq!(value["partial_data"], json!({"rationale": "r"}));
    assert!(
        value["error"]["suggestion"]
            .as_str()
            .unwrap()
            .contains("runtime_auto_wrap")
    );
    // Without the permission a confidence inside data stays business data.
    let value = check(
        decision(),
        r#"{"ok": true, "data": {"rationale": "r", "confidence": 0.8}}"#,
    );
    assert_eq!(value["meta"]["confidence"], 0.5);
}

#[test]
fn bare_answers_without_meta_get_conservative_defaults() {
    let value = check(&lenient(), r#"{"rationale": "r", "ok": "a field of mine"}"#);
    assert_eq!(value["meta"]["confidence"], 0.5);
    assert_eq!(value["meta"]["risk"], "medium");
    assert_eq!(value["data"]["ok"], "a field of mine");
    let value = check(&lenient(), r#"{"rationale": "r", "error": null}"#);
    assert_eq!(value["data"], json!({"rationale": "r", "error": null}));
}

#[test]
fn bare_errors_become_failures() {
    let value = check(
        &lenient(),
        r#"{"error": {"code": "E2006", "message": "which one?"}, "seen": [1]}"#,
    );
    assert_eq!(code(&value), "E2006");
    assert_eq!(value["meta"]["confidence"], 0.0);
    assert_eq!(value["meta"]["risk"], "high");
    assert_eq!(value["meta"]["explain"], "which one?");
    assert_eq!(value["partial_data"], json!({"seen": [1]}));
    let value = check(&lenient(), r#"{"error": "I cannot do that"}"#);
    assert_eq!(code(&value), "E2004");
    assert_eq!(value["error"]["message"], "I cannot do that");
}

fn failure(error: &Value) -> Value {
    check(decision(), json!({"ok": false, "error": error}).to_string())
}

#[test]
fn known_code_of_model_failure_is_preserved() {
    for known in [
        "E1004",
        "E2001",
        "E5001",
        "E9999",
        "BEHAVIOR_CHANGE_REQUIRED",
        "PARSE_ERROR",
        "UNSUPPORTED_LANGUAGE",
    ] {
        let value = failure(&json!({"code": known, "message": "a reason"}));
        assert_eq!(code(&value), known);
        assert_eq!(
            value["meta"],
            json!({"confidence": 0.0, "risk": "high", "explain": "a reason", "repairs": value["meta"]["repairs"]})
        );
    }
    for unknown in ["TOO_HARD", "W2001", "E0001", "e1001", ""] {
        let value = failure(&json!({"code": unknown, "message": "a reason", "details": {"kept": 1}}));
        assert_eq!(code(&value), "E2004");
        assert_eq!(
            value["error"]["details"],
            json!({"kept": 1, "module_code": unknown})
        );
    }
}

#[test]
fn legacy_code_becomes_number_if_schema_requires_it() {
    let mut numbered = schema();
    numbered["error"]["properties"]["code"]["pattern"] = json!("^E[1-9][0-9]{3}$");
    let module = module("tier: decision\n", &numbered);
    let answer =
        |code: &str| json!({"ok": false, "error": {"code": code, "message": "a reason"}}).to_string();
    let value = check(&module, answer("BEHAVIOR_CHANGE_REQUIRED"));
    assert_eq!(code(&value), "E2005");
    assert_eq!(repairs(&value)[0], "/error/code normalised");
    let value = check(&module, answer("TOO_HARD"));
    assert_eq!(code(&value), "E3001");
    assert_eq!(value["error"]["details"]["module_error"]["code"], "TOO_HARD");
}

#[test]
fn message_of_model_failure_is_preserved() {
    let error = json!({
        "code": "E2007", "message": "need the file", "recoverable": false, "suggestion": "attach it",
        "details": {"file": "a.rs"}, "own": [1]
    });
    assert_eq!(failure(&error)["error"], error);
    let value = failure(&json!({"code": "E2007", "message": "need the file"}));
    assert_eq!(value["error"]["recoverable"], true);
    let meta = json!({"confidence": 0.6, "risk": "medium", "explain": "hm", "own": 1});
    let value = check(
        decision(),
        json!({"ok": false, "meta": meta, "error": error}).to_string(),
    );
    assert_eq!(value["meta"], meta);
}

#[test]
fn long_message_is_truncated_in_explain_only() {
    let message = "m".repeat(400);
    let value = failure(&json!({"code": "E2007", "message": message}));
    assert_eq!(value["error"]["message"], message);
    assert_eq!(value["meta"]["explain"].as_str().unwrap().chars().count(), 280);
}

#[test]
fn invalid_failure_is_an_invalid_answer() {
    let cases = [
        json!({"ok": false}),
        json!({"ok": false, "error": "text"}),
        json!({"ok": false, "error": {"message": "no code"}}),
        json!({"ok": false, "error": {"code": "E2004"}}),
        json!({"ok": false, "error": {"code": "E2004", "message": "x"}}),
        json!({"ok": false, "error": {"code": "E2004", "message": "long enough", "recoverable": "yes"}}),
        json!({"ok": false, "error": {"code": "E2004", "message": "long enough"}, "data": {"rationale": "r"}}),
        json!({"ok": false, "error": {"code": "E2004", "message": "long enough"}, "meta": {"risk": "critical"}}),
        json!({"ok": false, "error": {"code": "E2004", "message": "long enough"}, "partial_data": [1]}),
        json!({"ok": false, "error": {"code": "E2004", "message": "long enough"}, "other": 1}),
    ];
    for case in cases {
        let value = check(decision(), case.to_string());
        assert_eq!(code(&value), "E3001", "{case}");
        assert_eq!(
            value["error"]["details"].get("module_error"),
            case.get("error"),
            "{case}"
        );
    }
    let careless = module(
        "tier: decision\nfailure: {must_return_error_schema: false}\n",
        &schema(),
    );
    let short = json!({"ok": false, "error": {"code": "E2004", "message": "x"}});
    assert_eq!(code(&check(&careless, short.to_string())), "E2004");
}

#[test]
fn partial_data_of_failure_requires_permission() {
    let answer =
        json!({"ok": false, "error": {"code": "E3002", "message": "half done"}, "partial_data": {"half": 1}});
    let value = check(decision(), answer.to_string());
    assert_eq!(value["partial_data"], json!({"half": 1}));
    let strict = module("tier: decision\nfailure: {partial_allowed: false}\n", &schema());
    let value = check(&strict, answer.to_string());
    assert_eq!(code(&value), "E3002");
    assert!(value.get("partial_data").is_none());
    assert!(repairs(&value).contains(&String::from("/partial_data removed")));
    let null = json!({"ok": false, "error": {"code": "E3002", "message": "half done"}, "partial_data": null, "data": null});
    assert_eq!(code(&check(decision(), null.to_string())), "E3002");
    assert_eq!(
        code(&check(
            decision(),
            reply(&[]).replace("\"data\"", "\"error\":null,\"data\"")
        )),
        "ok"
    );
}

#[test]
fn v1_constraints_are_enforced() {
    let strict = module(
        "constraints: {require_confidence: true, require_rationale: true}\n",
        &schema(),
    );
    assert_eq!(
        code(&check(&strict, r#"{"rationale": "r", "confidence": 0.9}"#)),
        "ok"
    );
    assert_eq!(code(&check(&strict, r#"{"rationale": "r"}"#)), "E3001");
    assert_eq!(code(&check(&strict, r#"{"confidence": 0.9}"#)), "E3003");
}
