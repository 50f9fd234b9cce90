//! Checks of the envelope and of the capabilities that a server declares.

use serde_json::{Value, json};

use crate::conformance::server::check::{Capability, Check, Next, PASSED, ask, ensure, fail};
use crate::conformance::server::request::ServerRequest;
use crate::conformance::server::response::ServerResponse;
use crate::conformance::server::test_module::TestModule;

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::new(
            "envelope.success",
            "a complete answer is one envelope with ok, meta and data",
            Capability::Both,
            success,
        )
        .at_level(1),
        Check::new(
            "envelope.failure",
            "an invalid input returns an envelope with ok false and an E1xxx code",
            Capability::Both,
            failure,
        )
        .at_level(1),
        Check::new(
            "errors.module",
            "an unknown module is E4006 with status 404",
            Capability::Both,
            unknown_module,
        )
        .recommended()
        .at_level(3),
        Check::new(
            "capabilities.declared",
            "the server declares runtime, version, streaming, media and transports",
            Capability::Both,
            declared,
        ),
    ]
}

fn success(at: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] => ask(at.execute().header("accept", "application/json")),
        [answer, ..] => {
            ensure(answer.status == 200, || {
                format!("expected status 200: {}", answer.summary())
            })?;
            answer.success()?;
            PASSED
        }
    }
}

fn failure(at: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] => ask(at.execute_on(&json!([0]), &json!({}))),
        [answer, ..] => {
            let envelope = answer.envelope()?;
            ensure(envelope["ok"] == false, || {
                String::from("an input that is not an object was accepted")
            })?;
            let code = answer.code().unwrap_or_default();
            ensure(code.starts_with("E1"), || {
                format!("the code is `{code}`, not an input error (E1xxx)")
            })?;
            ensure((400..500).contains(&answer.status), || {
                format!("status {} is not a client error (4xx)", answer.status)
            })?;
            PASSED
        }
    }
}

fn unknown_module(_: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] => ask(ServerRequest::post(
            "/v1/modules/no-such-module-here/execute",
            json!({}),
        )),
        [answer, ..] => {
            answer.envelope()?;
            ensure(
                answer.code().as_deref() == Some("E4006") && answer.status == 404,
                || format!("expected E4006 with status 404: {}", answer.summary()),
            )?;
            PASSED
        }
    }
}

fn declared(_: &TestModule, responses: &[ServerResponse]) -> Next {
    let [answer, ..] = responses else {
        return ask(ServerRequest::get("/v1/capabilities"));
    };
    let Some(body) = answer.json().filter(|_| answer.status == 200) else {
        return fail(format!("no capabilities declared: {}", answer.summary()));
    };
    // A bare object as in the specification, or the data of an envelope.
    let declared = body.get("data").unwrap_or(&body);
    for (pointer, is_right, what) in [
        ("/runtime", Value::is_string as fn(&Value) -> bool, "a string"),
        ("/version", Value::is_string, "a string"),
        ("/capabilities/streaming", Value::is_boolean, "true or false"),
        ("/capabilities/multimodal/input", Value::is_array, "a list"),
        ("/capabilities/multimodal/output", Value::is_array, "a list"),
        ("/capabilities/supported_transports", Value::is_array, "a list"),
    ] {
        let good = declared.pointer(pointer).is_some_and(is_right);
        ensure(good, || format!("`{pointer}` is missing or not {what}"))?;
    }
    PASSED
}
