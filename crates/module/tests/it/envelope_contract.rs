//! Rules for answers and inputs that follow from a module's manifest and schema.

use module::envelope::check_input;
use serde_json::{Value, json};

use crate::envelope_sample::{check, code, decision, exec, insights, module, repairs, reply, schema};

#[test]
fn each_fault_is_reported_once_with_allowed_values() {
    let mut strict = schema();
    strict["meta"]["properties"] = json!({
        "confidence": {"type": "number"},
        "risk": {"type": "string", "enum": ["none", "low", "medium", "high"]},
        "explain": {"type": "string"}
    });
    strict["data"]["properties"]["kind"] = json!({"enum": ["a", "b", "c", "d", 5]});
    let strict = module("tier: decision\nenums: {strategy: strict}\n", &strict);
    let errors =
        |changes: &[(&str, Value)]| check(&strict, reply(changes))["error"]["details"]["errors"].clone();
    for (pointer, wrong) in [
        ("/meta/risk", json!("critical")),
        ("/meta/confidence", json!("0.9")),
        ("/meta/explain", json!(7)),
        ("/meta", json!([])),
        ("/data/extensions", json!("none")),
        ("/data/extensions", json!([])),
    ] {
        let errors = errors(&[(pointer, wrong)]);
        assert_eq!(errors.as_array().unwrap().len(), 1, "{errors}");
        assert_eq!(errors[0]["pointer"], pointer);
    }
    let errors = errors(&[("/data/kind", json!("z"))]);
    assert_eq!(errors[0]["message"], r#"must be one of "a", "b", "c", "d", 5"#);
    let value = check(&strict, r#"{"ok": "true", "meta": {}, "data": {}}"#);
    let suggestion = value["error"]["suggestion"].as_str().unwrap();
    assert!(suggestion.starts_with("correct `/ok`"), "{suggestion}");
}

#[test]
fn risk_follows_the_rule() {
    let with = |rule: &str, changes: &[(&str, Value)]| {
        let module = module(
            &format!("tier: decision\nmeta: {{risk_rule: {rule}}}\n"),
            &schema(),
        );
        check(&module, reply(changes))["meta"]["risk"]
            .as_str()
            .map(String::from)
            .unwrap()
    };
    let none = ("/meta/risk", json!("none"));
    let issues = |items: Value| ("/data/issues", items);
    assert_eq!(with("max_changes_risk", std::slice::from_ref(&none)), "none");
    assert_eq!(
        with("max_changes_risk", &[none.clone(), ("/data/changes", json!([]))]),
        "low"
    );
    assert_eq!(
        with(
            "max_changes_risk",
            &[none.clone(), ("/data/changes", json!([{"risk": "odd"}]))]
        ),
        "medium"
    );
    assert_eq!(
        with(
            "max_changes_risk",
            &[none.clone(), ("/data/changes", json!([{"risk": " High"}]))]
        ),
        "high"
    );
    assert_eq!(
        with(
            "max_issues_risk",
            &[none.clone(), issues(json!([{"risk": "high"}]))]
        ),
        "high"
    );
    assert_eq!(
        with(
            "max_issues_risk",
            &[none.clone(), ("/data/changes", json!([{"risk": "high"}]))]
        ),
        "none"
    );
    assert_eq!(
        with("explicit", &[none, ("/data/changes", json!([{"risk": "high"}]))]),
        "none"
    );
    // Escalation only: the data never lowers the risk that the model states.
    assert_eq!(
        with(
            "max_changes_risk",
            &[("/meta/risk", json!("high")), ("/data/changes", json!([]))]
        ),
        "high"
    );
    assert_eq!(
        with(
            "max_changes_risk",
            &[
                ("/meta/risk", json!(null)),
                ("/data/changes", json!([{"risk": "high"}]))
            ]
        ),
        "high"
    );
}

#[test]
fn strict_enums_reject_custom_values() {
    let custom = reply(&[(
        "/data/changes",
        json!([{"type": {"custom": "inline", "reason": "r"}, "risk": "low"}]),
    )]);
    let strict = module("tier: decision\nenums: {strategy: strict}\n", &schema());
    let value = check(&strict, &custom);
    assert_eq!(code(&value), "E3005");
    assert_eq!(
        value["error"]["details"]["errors"][0]["pointer"],
        "/data/changes/0/type"
    );
    assert_eq!(
        code(&check(
            &strict,
            reply(&[("/data/changes", json!([{"type": "remove", "risk": "low"}]))])
        )),
        "ok"
    );
    assert_eq!(code(&check(exec(), &custom)), "E3005");
}

#[test]
fn custom_risk_counts_as_high() {
    let mut own = schema();
    own["meta"]["properties"]["risk"] = json!({"oneOf": [
        {"type": "string", "enum": ["none", "low", "medium", "high"]}, {"$ref": "#/$defs/custom"}
    ]});
    let custom = reply(&[("/meta/risk", json!({"custom": "legal", "reason": "unclear law"}))]);
    let value = check(&module("tier: decision\n", &own), &custom);
    assert_eq!(value["meta"]["risk"], "high");
    assert_eq!(value["meta"]["risk_custom"]["custom"], "legal");
    assert_eq!(repairs(&value), ["/meta/risk replaced"]);
    assert_eq!(
        code(&check(
            &module("tier: decision\nenums: {strategy: strict}\n", &own),
            &custom
        )),
        "E3005"
    );
    let text = reply(&[("/meta/risk", json!("low"))]);
    assert_eq!(code(&check(&module("tier: decision\n", &own), &text)), "ok");
}

#[test]
fn overflow_uses_smallest_limit() {
    let with = |overflow: &str, count: usize| {
        let module = module(
            &format!("tier: exploration\noverflow: {{{overflow}}}\n"),
            &schema(),
        );
        String::from(code(&check(
            &module,
            reply(&[("/data/extensions", insights(count))]),
        )))
    };
    assert_eq!(with("enabled: true, max_items: 10", 5), "ok");
    assert_eq!(with("enabled: true, max_items: 10", 6), "E3004");
    assert_eq!(with("enabled: true, max_items: 2", 3), "E3004");
    assert_eq!(with("enabled: false", 1), "E3004");
    assert_eq!(with("enabled: false", 0), "ok");
    let mut open = schema();
    open["$defs"]["extensions"] = json!({"type": "object"});
    let exploration = module("tier: exploration\n", &open);
    assert_eq!(
        code(&check(&exploration, reply(&[("/data/extensions", insights(20))]))),
        "ok"
    );
    assert_eq!(
        code(&check(&exploration, reply(&[("/data/extensions", insights(21))]))),
        "E3004"
    );
}

#[test]
fn strictness_controls_optional_fields() {
    let mut marked = schema();
    marked["data"]["required"] = json!(["rationale", "score", "kind"]);
    marked["data"]["properties"]["score"]["x-cognitive-optional"] = json!(true);
    marked["data"]["properties"]["rationale"]["x-cognitive-optional"] = json!(true);
    let with = |strictness: &str, changes: &[(&str, Value)]| {
        let module = module(
            &format!("tier: decision\nschema_strictness: {strictness}\n"),
            &marked,
        );
        String::from(code(&check(&module, reply(changes))))
    };
    let kind = ("/data/kind", json!("a"));
    assert_eq!(with("high", std::slice::from_ref(&kind)), "E3001");
    assert_eq!(with("medium", std::slice::from_ref(&kind)), "ok");
    assert_eq!(with("low", std::slice::from_ref(&kind)), "ok");
    assert_eq!(with("low", &[]), "E3001");
    assert_eq!(with("low", &[kind.clone(), ("/data/score", json!("x"))]), "E3001");
    assert_eq!(with("low", &[kind, ("/data/rationale", json!(null))]), "E3003");
}

#[test]
fn rules_across_meta_and_data_are_enforced() {
    let mut ruled = schema();
    ruled["envelope"] = json!({
        "if": {"properties": {"data": {"properties": {"equivalent": {"const": false}}, "required": ["equivalent"]}}},
        "then": {"properties": {"meta": {"properties": {"confidence": {"maximum": 0.7}}}}}
    });
    let module = module("tier: decision\n", &ruled);
    let value = check(&module, reply(&[("/data/equivalent", json!(false))]));
    assert_eq!(code(&value), "E3006");
    assert_eq!(
        value["error"]["details"]["errors"][0]["pointer"],
        "/meta/confidence"
    );
    assert_eq!(value["partial_data"]["equivalent"], false);
    let modest = [
        ("/data/equivalent", json!(false)),
        ("/meta/confidence", json!(0.7)),
    ];
    assert_eq!(code(&check(&module, reply(&modest))), "ok");
    assert_eq!(
        code(&check(&module, reply(&[("/data/equivalent", json!(true))]))),
        "ok"
    );
}

#[test]
fn input_error_lists_all_violations() {
    let module = decision();
    let failed = |input: Value| check_input(module, &input).unwrap_err();
    assert!(check_input(module, &json!({"code": "x"})).is_ok());
    assert_eq!(failed(json!({})).code, "E1002");
    assert_eq!(failed(json!({"code": 3})).code, "E1003");
    assert_eq!(failed(json!({"code": ""})).code, "E1001");
    let both = failed(json!({"depth": "deep"}));
    assert_eq!(both.code, "E1001");
    assert!(both.recoverable);
    let envelope = module::Envelope::failure(*both).into_value();
    assert_eq!(envelope["meta"]["confidence"], 0.0);
    assert_eq!(envelope["meta"]["risk"], "high");
    assert_eq!(
        envelope["error"]["details"]["errors"].as_array().unwrap().len(),
        2
    );
}

#[test]
fn uncompilable_schema_is_not_a_model_error() {
    let mut broken = schema();
    broken["data"]["properties"]["score"] = json!({"type": "nonsense"});
    let value = check(&module("tier: decision\n", &broken), reply(&[]));
    assert_eq!(code(&value), "E4000");
    assert_eq!(value["partial_data"]["rationale"], "because");
}

#[test]
fn invalid_media_have_specific_codes() {
    let mut sees = schema();
    sees["input"]["properties"]["images"] = json!({"type": "array", "items": {
        "type": "object",
        "required": ["type"],
        "oneOf": [
            {"required": ["url"], "properties": {"type": {"const": "url"}}},
            {"required": ["media_type", "data"], "properties": {
                "type": {"const": "base64"},
                "media_type": {"pattern": "^(image|audio|video|application)/"},
                "data": {"pattern": "^[A-Za-z0-9+/]+={0,2}$"}
            }}
        ]
    }});
    let sees = module("tier: decision\nmodalities: {input: [text, image]}\n", &sees);
    for (item, code, pointer) in [
        (
            json!({"media_type": "image/png", "data": "aGk="}),
            "E1002",
            "/images/0",
        ),
        (json!({"type": "base64", "data": "aGk="}), "E1002", "/images/0"),
        (
            json!({"type": "base64", "media_type": "image/png", "data": "!"}),
            "E1013",
            "/images/0/data",
        ),
        (
            json!({"type": "base64", "media_type": "text/plain", "data": "aGk="}),
            "E1010",
            "/images/0/media_type",
        ),
        (
            json!({"type": "ftp", "url": "https://x.example/a"}),
            "E1004",
            "/images/0/type",
        ),
        (json!({"kind": "none of these"}), "E1001", "/images/0"),
    ] {
        let error = check_input(&sees, &json!({"code": "x", "images": [item.clone()]})).unwrap_err();
        let errors = &error.details.as_ref().unwrap()["errors"];
        assert_eq!(
            (error.code.as_str(), &errors[0]["pointer"]),
            (code, &json!(pointer)),
            "{errors}"
        );
    }
}
