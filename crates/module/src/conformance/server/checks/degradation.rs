//! What a server does where it cannot do what is asked: it says so, in the way that the specification has
//! for it.

use serde_json::json;

use super::negotiation::says_so;
use crate::conformance::server::response::ServerResponse;
use crate::conformance::server::check::{Check, Capability, Next, PASSED, ask, ensure};
use crate::conformance::server::test_module::TestModule;

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::new(
            "degradation.streaming",
            "a stream that cannot be had is a whole answer with a warning, by Accept alone as well",
            Capability::Sync,
            streaming,
        ),
        Check::new(
            "degradation.media",
            "a good picture is answered, or refused with E4011 where no model sees",
            Capability::Image,
            media,
        ),
    ]
}

fn streaming(at: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
        [] => ask(at.stream()),
        [answer, ..] => {
            says_so(answer)?;
            PASSED
        }
    }
}

fn media(at: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
        [] => ask(at
            .execute_on(&at.input, &json!({}))
            .header("accept", "application/json")),
        [answer, ..] => {
            let envelope = answer.envelope()?;
            let refused = answer.code().as_deref() == Some("E4011");
            ensure(envelope["ok"] == true || refused, || {
                format!("an answer or E4011 was expected: {}", answer.summary())
            })?;
            PASSED
        }
    }
}
