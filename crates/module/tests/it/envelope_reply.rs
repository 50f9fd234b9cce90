//! Extraction of the answer from a model's reply text.

use module::envelope::{CheckOptions, Profile, ReplyForm, check_reply, check_structure};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::envelope_sample::{check, code, decision, module, old, reply, schema};

fn reading(text: impl AsRef<[u8]>) -> ReplyForm {
    check_reply(decision(), text.as_ref(), &CheckOptions::default()).reading
}

#[test]
fn finds_answer_in_surrounding_text() {
    let tricky = reply(&[(
        "/data/code",
        json!("fn f() { let s = \"```json {\\\"ok\\\": false}\"; } // } ] ``` {"),
    )]);
    let pretty = serde_json::to_string_pretty(&serde_json::from_str::<Value>(&tricky).unwrap()).unwrap();
    let expected = check(decision(), &tricky);
    assert_eq!(code(&expected), "ok");
    assert_eq!(reading(&tricky), ReplyForm::Whole);
    assert_eq!(reading(format!("\u{FEFF}\r\n{tricky}\n")), ReplyForm::Whole);
    let around = [
        format!("\u{FEFF}{tricky}"),
        format!("\n\t{pretty}\r\n"),
        format!("```json\n{pretty}\n```"),
        format!("```\n{tricky}\n```\n"),
        format!("~~~ JSON5 title=\"x\"\n{pretty}\n~~~"),
        format!("Sure! Here is the answer:\n\n```json\n{pretty}\n```\n\nLet me know if {{this}} helps."),
        format!("Here it is: {tricky} Done."),
        format!("<think>maybe {{\"ok\": true}} or [1] or {{x | x > 0}} or {{ }}</think>{tricky}"),
        format!("{{\"draft\": 1}}\n{tricky}\n{{\"note\": \"not an envelope\"}}"),
        format!("fn main() {{ println!(\"{{}}\"); }}\n{tricky}"),
        format!("A set {{\"a\", \"b\"}} and then {tricky}"),
        format!("{tricky}\n{{\"cut\": \"of"),
        format!("- [ ] todo [link](url) {tricky}"),
    ];
    for text in around {
        assert_eq!(check(decision(), &text), expected, "{text}");
    }
}

#[test]
fn last_valid_answer_is_used() {
    let first = reply(&[("/data/score", json!(1))]);
    let second = reply(&[("/data/score", json!(2))]);
    let bad = reply(&[("/data/score", json!("x"))]);
    let score = |text: String| check(decision(), text)["data"]["score"].clone();
    assert_eq!(score(format!("{first} then {second}")), 2);
    assert_eq!(score(format!("{first} then {bad}")), 1);
    assert_eq!(score(format!("{first}{second}{bad}")), 2);
    let lenient = module("tier: decision\ncompat: {runtime_auto_wrap: true}\n", &schema());
    let value = check(
        &lenient,
        r#"{"rationale": "a", "score": 1} {"rationale": "b", "score": 2} {"x": 1}"#,
    );
    assert_eq!(value["data"]["score"], 2);
    let value = check(&lenient, r#"{"x": 1} {"y": 1}"#);
    assert_eq!(
        (code(&value), &value["partial_data"]),
        ("E3003", &json!({"y": 1}))
    );
}

#[test]
fn nested_objects_of_invalid_object_are_not_answers() {
    let lenient = module("tier: decision\ncompat: {runtime_auto_wrap: true}\n", &schema());
    let rest = r#"false, "error": {"code": "E2004", "message": "no"}, "partial_data": {"rationale": "r"}}"#;
    let texts = [
        format!("{{\n  // the verdict\n  \"ok\": {rest}"),
        format!("{{ /* the verdict */ \"ok\": {rest}"),
        format!("{{“ok”: {rest}"),
        format!("{{‘ok’: {rest}"),
        format!("{{'ok': {rest}"),
        format!("{{ok: {rest}"),
        format!("Here: {{\"ok\": verdict, \"was\": {rest}"),
    ];
    for text in texts {
        let value = check(&lenient, &text);
        assert_eq!(code(&value), "E1000", "{text}");
        assert_eq!(value["error"]["details"]["reason"], "malformed", "{text}");
    }
}

#[test]
fn truncated_reply_yields_complete_fields() {
    let whole = r#"{"ok": true, "meta": {"confidence": 0.9}, "data": {"rationale": "because", "list": [1, {"a": "b"}, 22], "code": "x"#;
    let expected = json!({"rationale": "because", "list": [1, {"a": "b"}, 22]});
    let texts = [
        String::from(whole),
        format!("```json\n{whole}"),
        format!("Here: {whole}"),
        format!("```json\n{}\n```", whole.strip_suffix("\"x").unwrap().trim_end()),
    ];
    for text in texts {
        let value = check(decision(), &text);
        assert_eq!(code(&value), "E1000", "{text}");
        assert_eq!(value["error"]["details"]["truncated"], true, "{text}");
        assert_eq!(value["error"]["details"]["stage"], "output");
        assert_eq!(value["partial_data"], expected, "{text}");
    }
    let value = check(
        decision(),
        "{\"ok\": true, \"data\": {\"rationale\": \"a\", \"b\": \"caf\u{e9}".as_bytes(),
    );
    assert_eq!(value["partial_data"], json!({"rationale": "a"}));
    let mut inside = "{\"ok\": true, \"data\": {\"rationale\": \"a\", \"b\": \"caf\u{e9}"
        .as_bytes()
        .to_vec();
    inside.pop();
    let value = check(decision(), inside);
    assert_eq!(value["error"]["details"]["truncated"], true);
    for (text, rest) in [
        ("{", None),
        ("{\"a", None),
        (
            "{\"rationale\": \"r\", \"n\": 12",
            Some(json!({"rationale": "r"})),
        ),
    ] {
        let value = check(decision(), text);
        assert_eq!(value["error"]["details"]["truncated"], true, "{text}");
        assert_eq!(value.get("partial_data"), rest.as_ref(), "{text}");
    }
}

#[test]
fn distinguishes_failure_reasons() {
    let deep = format!("{}1{}", "{\"a\":".repeat(200), "}".repeat(200));
    let deep_cut = "{\"a\":[".repeat(100_000);
    let cases: [(&[u8], &str); 9] = [
        (b"", "empty"),
        (b"no", "no_json"),
        (b"see [1] and [2]", "no_json"),
        (b"{\"a\": }", "malformed"),
        (b"{\"a\": \"\xff\"}", "invalid_utf8"),
        (b"\xff\xfe{\x00}\x00", "invalid_utf8"),
        (b"```json\n[{\"a\": 1}]\n```", "not_an_object"),
        (deep.as_bytes(), "nesting"),
        (deep_cut.as_bytes(), "nesting"),
    ];
    for (text, reason) in cases {
        let value = check(decision(), text);
        assert_eq!(
            value["error"]["details"]["reason"],
            reason,
            "{:?}",
            String::from_utf8_lossy(text).get(..40)
        );
    }
    let value = check(decision(), vec![b' '; module::limits::REPLY_BYTES_MAX + 1]);
    assert_eq!(value["error"]["details"]["reason"], "too_large");
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(Value::from),
        "\\PC*".prop_map(Value::from),
        "[{}\\[\\]\"\\\\`:, \n\ta-c]{0,24}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Fields without rules in the sample modules.
fn free_fields() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec(("x_[\\PC]{0,8}", json_value()), 0..6)
        .prop_map(|members| members.into_iter().collect())
}

fn answer(meta: Map<String, Value>, data: Map<String, Value>) -> Value {
    let mut value = json!({
        "ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"}, "data": {"rationale": "r"}
    });
    value["meta"].as_object_mut().unwrap().extend(meta);
    value["data"].as_object_mut().unwrap().extend(data);
    value
}

fn noise() -> impl Strategy<Value = String> {
    "[^{\\[\u{FEFF}]{0,40}"
}

proptest! {
    #![proptest_config(crate::property::cases(300))]

    #[test]
    fn unknown_fields_survive_and_data_is_byte_identical(meta in free_fields(), data in free_fields()) {
        let sent = answer(meta, data);
        let value = check(decision(), sent.to_string());
        prop_assert_eq!(&value["meta"], &sent["meta"]);
        prop_assert_eq!(value["data"].to_string(), sent["data"].to_string());
    }

    #[test]
    fn surrounding_text_does_not_change_result(
        data in free_fields(),
        before in noise(),
        after in noise(),
        fenced: bool,
    ) {
        let sent = answer(Map::new(), data);
        let text = if fenced {
            format!("{before}\n```json\n{sent:#}\n```\n{after}")
        } else {
            format!("{before}{sent}{after}")
        };
        let value = check(decision(), text);
        prop_assert_eq!(value["data"].to_string(), sent["data"].to_string());
    }

    #[test]
    fn any_object_gives_a_valid_envelope(value in json_value(), key in "ok|meta|data|error|partial_data|version|_x", inner in json_value()) {
        let mut object = match value {
            Value::Object(object) => object,
            other => [(String::from("data"), other)].into_iter().collect(),
        };
        object.insert(key, inner);
        object.insert(String::from("ok"), json!(object.len() % 2 == 0));
        for module in [decision(), old()] {
            check(module, Value::Object(object.clone()).to_string());
        }
    }

    #[test]
    fn any_cut_of_an_answer_gives_a_valid_envelope(data in free_fields(), cut in any::<prop::sample::Index>()) {
        let text = answer(Map::new(), data).to_string().into_bytes();
        let cut = cut.index(text.len());
        let value = check(decision(), &text[..cut]);
        prop_assert_eq!(code(&value), "E1000");
    }
}

#[test]
fn any_bytes_give_a_valid_envelope() {
    bolero::check!().with_iterations(3_000).for_each(|bytes: &[u8]| {
        for module in [decision(), old()] {
            let outcome = check_reply(module, bytes, &CheckOptions::default());
            let value = outcome.envelope.into_value();
            assert!(check_structure(&value, Profile::Cognitive).is_empty(), "{value}");
        }
    });
}

/// Bytes from the alphabet of JSON reach deeper into the parser than random bytes.
#[test]
fn any_json_like_bytes_give_a_valid_envelope() {
    let words: [&str; 16] = [
        "{",
        "}",
        "[",
        "]",
        "\"",
        ":",
        ",",
        "\"ok\":true",
        "\"meta\":{",
        "\"data\":{\"rationale\":\"r\"",
        "\"error\":",
        "\\",
        "1",
        "null",
        "```json\n",
        " x ",
    ];
    bolero::check!().with_iterations(3_000).for_each(|bytes: &[u8]| {
        let text: String = bytes
            .iter()
            .filter_map(|byte| words.get(usize::from(byte % 16)))
            .copied()
            .collect();
        let value = check_reply(old(), text.as_bytes(), &CheckOptions::default())
            .envelope
            .into_value();
        assert!(check_structure(&value, Profile::Cognitive).is_empty(), "{value}");
    });
}
