//! Patches set and delete fields and cannot change structural fields in any spelling.

use serde_json::{Value, json};

use super::{Patch, Target, apply, apply_without_body};
use crate::adaptation::{Action, Component, Degradation, Ledger};
use crate::envelope::Request;
use crate::error::ErrorKind;
use crate::limits::{PATCHES_BYTES_MAX, PATCHES_MAX};

fn patches(list: Value) -> Vec<Patch> {
    serde_json::from_value(list).unwrap()
}

fn set(pointer: &str, value: &Value) -> Value {
    json!({"pointer": pointer, "value": value})
}

fn kind(kind: &str) -> Target {
    Target {
        kind: Some(String::from(kind)),
        ..Target::default()
    }
}

/// The patched body, and the pointers of the dropped patches.
fn patched(mut body: Value, list: Value) -> (Value, Vec<String>) {
    let mut ledger = Ledger::new(Component::Adapter);
    let warn = Degradation::Warn;
    apply(&mut body, &patches(list), &kind("openai"), warn, &mut ledger).unwrap();
    assert!(
        ledger
            .entries()
            .iter()
            .all(|entry| entry.action == Action::Dropped)
    );
    let places = ledger.entries().iter().map(|entry| entry.pointer.clone());
    (body, places.collect())
}

#[test]
fn patches_cannot_change_structural_fields() {
    let list: Vec<Value> = [
        ("/messages", json!([])),
        ("/tools/0", json!({})),
        ("/mess~0ages", json!(1)),
        ("/top_k", json!(3)),
        ("", json!({})),
        ("/nowhere/a", json!(1)),
    ]
    .iter()
    .map(|(pointer, value)| {
        let mut patch = set(pointer, value);
        patch["match"] = json!({"kind": "openai"});
        patch
    })
    .collect();
    let body = json!({"messages": [1], "tools": [1]});
    let (body, refused) = patched(body, json!(list));
    assert_eq!(
        body,
        json!({"messages": [1], "tools": [1], "mess~ages": 1, "top_k": 3})
    );
    assert_eq!(refused, ["/patches/0", "/patches/1", "/patches/4", "/patches/5"]);

    let mut untouched = json!({});
    let mut ledger = Ledger::new(Component::Adapter);
    let list = patches(json!(list));
    apply(
        &mut untouched,
        &list,
        &kind("gemini"),
        Degradation::Strict,
        &mut ledger,
    )
    .unwrap();
    assert_eq!(untouched, json!({}));
}

#[test]
fn spelling_variants_cannot_change_structural_fields() {
    let names = [
        "/system_instruction",
        "/systemInstruction/parts",
        "/Messages",
        "/MODEL",
        "/\u{17f}tream",
        "/mas\u{212a}",
        "/generationConfig",
        "/generation_config/candidate_count",
        "/generationConfig/responseSchema/type",
        "/output_config",
        "/output_config/format",
        "/cached_content",
        "/image[]",
        "/image[0]",
        "/metadata/user_id",
        "/mcp_servers",
        "/",
        "//",
        "model",
    ];
    for name in names {
        let (body, refused) = patched(json!({}), json!([set(name, &json!("x"))]));
        assert_eq!(body, json!({}), "{name}");
        assert_eq!(refused, ["/patches/0"], "{name}");
        let (_, refused) = patched(json!({}), json!([{"pointer": name, "delete": true}]));
        assert_eq!(refused, ["/patches/0"], "{name}");
    }
}

#[test]
fn values_are_set_and_deleted_in_place() {
    let list = json!([
        set("/options/mirostat", &json!(2)),
        set("/generationConfig/topK", &json!(7)),
        set("/output_config/effort", &json!("low")),
        set("/logit_bias", &json!(null)),
        {"pointer": "/seed", "delete": true},
        {"pointer": "/options/none", "delete": true},
        set("/extra~1body/a", &json!(1)),
        set("/stop/0", &json!("x")),
    ]);
    let body = json!({"seed": 7, "options": {"num_predict": 5}, "extra/body": {}, "stop": ["y"]});
    let (body, refused) = patched(body, list);
    assert_eq!(
        body,
        json!({
            "options": {"num_predict": 5, "mirostat": 2}, "generationConfig": {"topK": 7},
            "output_config": {"effort": "low"}, "logit_bias": null, "extra/body": {"a": 1}, "stop": ["y"]
        })
    );
    assert_eq!(refused, ["/patches/7"], "list elements cannot be patched");
    // Deleting from a missing section has no effect and does not create it.
    let (body, refused) = patched(json!({}), json!([{"pointer": "/options/a", "delete": true}]));
    assert_eq!((body, refused.len()), (json!({}), 0));
}

#[test]
fn strict_degradation_refuses_dropped_patches() {
    let list = patches(json!([set("/top_k", &json!(1)), set("/model", &json!("dear"))]));
    let mut ledger = Ledger::new(Component::Adapter);
    let strict = Degradation::Strict;
    let refused = apply(&mut json!({}), &list, &kind("openai"), strict, &mut ledger);
    let error = refused.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.message.starts_with("/patches/1: "), "{}", error.message);
    let refused = apply_without_body(&list, &kind("command"), strict, &mut ledger);
    assert!(refused.unwrap_err().message.starts_with("/patches/0: "));
    assert!(ledger.entries().is_empty());
    apply_without_body(&list, &kind("command"), Degradation::Warn, &mut ledger).unwrap();
    assert_eq!(ledger.entries().len(), 2);
}

#[test]
fn patch_has_value_xor_delete_and_is_bounded() {
    let checked = |list: Value| {
        let value = json!({"operation": "embeddings", "payload": {"input": "a"}, "patches": list});
        serde_json::from_value::<Request>(value).unwrap().check()
    };
    assert_eq!(checked(json!([set("/a", &json!(null))])), Ok(()));
    let cases = [
        (
            json!([set("/a", &json!(1)), {"pointer": "/b"}]),
            "`patches[1]` has neither",
        ),
        (
            json!([{"pointer": "/b", "value": 1, "delete": true}]),
            "`patches[0]` has both",
        ),
        (
            json!([{"pointer": "/b", "value": null, "delete": true}]),
            "`patches[0]` has both",
        ),
        (json!(vec![set("/a", &json!(1)); PATCHES_MAX + 1]), "more than"),
        (
            json!([set("/a", &json!("x".repeat(PATCHES_BYTES_MAX)))]),
            "larger than",
        ),
    ];
    for (list, part) in cases {
        let error = checked(list).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidRequest);
        assert!(error.message.contains(part), "{}", error.message);
    }
    let exact = json!(vec![set("/a", &json!(1)); PATCHES_MAX]);
    assert_eq!(checked(exact), Ok(()));
}
