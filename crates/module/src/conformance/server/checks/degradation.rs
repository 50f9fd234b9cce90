//! Checks of degradation: a server that cannot do what was requested reports it as the specification
//! prescribes.

use serde_json::json;

use super::negotiation::expect_fallback_warning;
use crate::conformance::server::check::{Capability, Check, Next, PASSED, ask, ensure};
use crate::conformance::server::response::ServerResponse;
use crate::conformance::server::test_module::TestModule;

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::new(
            "degradation.streaming",
            "a stream that is not available becomes a complete answer with a warning, also if requested by Accept alone",
            Capability::Sync,
            streaming,
        ),
        Check::new(
            "degradation.media",
            "a valid image is answered, or refused with E4011 if no model accepts images",
            Capability::Image,
            media,
        ),
    ]
}

fn streaming(at: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] => ask(at.stream()),
        [answer, ..] => {
            expect_fallback_warning(answer)?;
            PASSED
        }
    }
}

fn media(at: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] => ask(at
            .execute_on(&at.input, &json!({}))
            .header("accept", "application/json")),
        [answer, ..] => {
            let envelope = answer.envelope()?;
            let refused = answer.code().as_deref() == Some("E4011");
            ensure(envelope["ok"] == true || refused, || {
                format!("expected an answer or E4011: {}", answer.summary())
            })?;
            PASSED
        }
    }
}
