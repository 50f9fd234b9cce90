use serde_json::json;

use super::ExecuteBody;

#[test]
fn parses_wrapper_only_with_input_and_underscore_keys() {
    for (body, input, wraps) in [
        (json!({"input": {"a": 1}}), json!({"a": 1}), true),
        (
            json!({"input": {"a": 1}, "_options": {"strict": true}}),
            json!({"a": 1}),
            true,
        ),
        (
            json!({"input": 1, "other": 2}),
            json!({"input": 1, "other": 2}),
            false,
        ),
        (json!({"_options": {}}), json!({"_options": {}}), false),
        (json!({"a": 1}), json!({"a": 1}), false),
        (json!([1]), json!([1]), false),
    ] {
        let parsed = ExecuteBody::parse(body.clone()).unwrap();
        assert_eq!(parsed.input, input, "{body}");
        assert_eq!(parsed.options.strict, wraps && body["_options"]["strict"] == true);
    }
}

#[test]
fn refuses_malformed_options_and_ignores_unknown_ones() {
    assert!(ExecuteBody::parse(json!({"input": {}, "_options": {"progress": "no"}})).is_err());
    assert!(ExecuteBody::parse(json!({"input": {}, "_recovery": {"last_seq": 1}})).is_err());
    assert!(ExecuteBody::parse(json!({"input": {}, "_options": {"new_thing": 1}})).is_ok());
    let body = json!({"input": {}, "_options": {"response_mode": "sideways"}});
    let refusal = ExecuteBody::parse(body).unwrap_err();
    assert_eq!(refusal.into_body().code, "E1004");
    let refusal = ExecuteBody::parse(json!({"input": {}, "_options": "fast"})).unwrap_err();
    let message = refusal.into_body().message;
    assert!(message.ends_with("expected an object"), "{message}");
}

#[test]
fn integral_float_is_an_integer() {
    let parse = |seq: serde_json::Value| {
        let checkpoint = json!({"offset": seq, "hash": "abcdef"});
        let recovery = json!({"session_id": "s", "last_seq": seq, "last_checkpoint": checkpoint});
        ExecuteBody::parse(json!({"input": {}, "_recovery": recovery})).map(|body| body.recovery.unwrap())
    };
    for seq in [json!(696_051), json!(696_051.0), json!(6.96051e5)] {
        let recovery = parse(seq).unwrap();
        assert_eq!(recovery.last_seq, 696_051);
        assert_eq!(recovery.last_checkpoint.unwrap().offset, 696_051);
    }
    for seq in [
        json!(0.5),
        json!(-1),
        json!(-1.0),
        json!(1e300),
        json!("1"),
        json!(null),
    ] {
        assert!(parse(seq.clone()).is_err(), "{seq}");
    }
}
