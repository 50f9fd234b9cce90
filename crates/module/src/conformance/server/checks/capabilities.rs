//! What holds for every answer, and what a server says about itself.

use serde_json::{Value, json};

use crate::conformance::server::response::ServerResponse;
use crate::conformance::server::request::ServerRequest;
use crate::conformance::server::check::{Check, Capability, Next, PASSED, ask, fail, ensure};
use crate::conformance::server::test_module::TestModule;

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::new(
            "envelope.success",
            "a whole answer is one envelope with ok, meta and data",
            Capability::Both,
            success,
        )
        .at_level(1),
        Check::new(
            "envelope.failure",
            "an input that does not fit is an envelope with ok false and an E1xxx code",
            Capability::Both,
            failure,
        )
        .at_level(1),
        Check::new(
            "errors.module",
            "a module that is not there is E4006 with status 404",
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

fn success(at: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
        [] => ask(at.execute().header("accept", "application/json")),
        [answer, ..] => {
            ensure(answer.status == 200, || {
                format!("status 200 was expected: {}", answer.summary())
            })?;
            answer.success()?;
            PASSED
        }
    }
}

fn failure(at: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
        [] => ask(at.execute_on(&json!([0]), &json!({}))),
        [answer, ..] => {
            let envelope = answer.envelope()?;
            ensure(envelope["ok"] == false, || {
                String::from("an input that is no object was taken")
            })?;
            let code = answer.code().unwrap_or_default();
            ensure(code.starts_with("E1"), || {
                format!("the code is `{code}`, not of the input (E1xxx)")
            })?;
            ensure((400..500).contains(&answer.status), || {
                format!("status {} does not say that the caller erred", answer.status)
            })?;
            PASSED
        }
    }
}

fn unknown_module(_: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
        [] => ask(ServerRequest::post("/v1/modules/no-such-module-here/execute", json!({}))),
        [answer, ..] => {
            answer.envelope()?;
            ensure(
                answer.code().as_deref() == Some("E4006") && answer.status == 404,
                || format!("E4006 with 404 was expected: {}", answer.summary()),
            )?;
            PASSED
        }
    }
}

fn declared(_: &TestModule, heard: &[ServerResponse]) -> Next {
    let [answer, ..] = heard else {
        return ask(ServerRequest::get("/v1/capabilities"));
    };
    let Some(body) = answer.json().filter(|_| answer.status == 200) else {
        return fail(format!("no declaration: {}", answer.summary()));
    };
    // Bare as the specification shows it, or as the data of an envelope.
    let said = body.get("data").unwrap_or(&body);
    for (pointer, is_right, what) in [
        ("/runtime", Value::is_string as fn(&Value) -> bool, "a text"),
        ("/version", Value::is_string, "a text"),
        ("/capabilities/streaming", Value::is_boolean, "true or false"),
        ("/capabilities/multimodal/input", Value::is_array, "a list"),
        ("/capabilities/multimodal/output", Value::is_array, "a list"),
        ("/capabilities/supported_transports", Value::is_array, "a list"),
    ] {
        let good = said.pointer(pointer).is_some_and(is_right);
        ensure(good, || format!("`{pointer}` is missing or not {what}"))?;
    }
    PASSED
}
