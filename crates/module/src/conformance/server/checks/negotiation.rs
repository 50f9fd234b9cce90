//! Checks of response mode negotiation: the precedence of the five signals, and the table of outcomes for
//! modules that do not support the requested mode.

use serde_json::{Value, json};

use crate::conformance::server::check::{Capability, Check, CheckEnd, Next, PASSED, ask, ensure};
use crate::conformance::server::request::ServerRequest;
use crate::conformance::server::response::ServerResponse;
use crate::conformance::server::test_module::TestModule;

const HEADER: &str = "x-cognitive-response-mode";

pub(super) fn checks() -> Vec<Check> {
    let mut checks = signals();
    checks.extend(mismatches());
    checks
}

/// Precedence of the signals.
fn signals() -> Vec<Check> {
    vec![
        Check::new(
            "negotiation.default",
            "without any signal a module of mode both returns a complete answer",
            Capability::Both,
            by_default,
        ),
        Check::new(
            "negotiation.accept",
            "Accept: text/event-stream gives server-sent events",
            Capability::Both,
            by_accept,
        ),
        Check::new(
            "negotiation.query",
            "the query parameter response_mode takes precedence over Accept",
            Capability::Both,
            by_query,
        ),
        Check::new(
            "negotiation.body",
            "_options.response_mode takes precedence over the query",
            Capability::Both,
            by_body,
        ),
        Check::new(
            "negotiation.header",
            "X-Cognitive-Response-Mode takes precedence over the body",
            Capability::Both,
            by_header,
        ),
    ]
}

/// Outcomes where the module does not support the requested mode.
fn mismatches() -> Vec<Check> {
    vec![
        Check::new(
            "negotiation.sync-module",
            "a module of mode sync returns a complete answer when a stream is requested, with X-Cognitive-Warning and W4010",
            Capability::Sync,
            sync_module,
        ),
        Check::new(
            "negotiation.strict",
            "with _options.strict the same request is E4010",
            Capability::Sync,
            strict,
        )
        .recommended(),
        Check::new(
            "negotiation.streaming-default",
            "without any signal a module of mode streaming streams",
            Capability::Streaming,
            streaming_default,
        ),
        Check::new(
            "negotiation.streaming-sync",
            "a complete answer requested from a module of mode streaming is E4010, or returned with a warning",
            Capability::Streaming,
            streaming_sync,
        ),
    ]
}

fn mode(mode: &str) -> Value {
    json!({"_options": {"response_mode": mode}})
}

fn streams(answer: &ServerResponse) -> Next {
    answer.stream()?;
    PASSED
}

fn is_whole(answer: &ServerResponse) -> Next {
    answer.success()?;
    PASSED
}

fn by_default(at: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] => ask(at.execute()),
        [answer] => {
            is_whole(answer)?;
            ask(at.execute().header("accept", "*/*"))
        }
        [_, answer, ..] => is_whole(answer),
    }
}

fn by_accept(at: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] => ask(at.stream()),
        [answer] => {
            answer.stream()?;
            let kind = answer.header("content-type").unwrap_or_default();
            ensure(kind.starts_with("text/event-stream"), || {
                format!("the content type is `{kind}`")
            })?;
            ask(at.execute().header("accept", "application/json"))
        }
        [_, answer, ..] => is_whole(answer),
    }
}

fn by_query(at: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] => ask(at
            .execute()
            .query("response_mode=streaming")
            .header("accept", "application/json")),
        [answer] => {
            streams(answer)?;
            ask(at.stream().query("response_mode=sync"))
        }
        [_, answer, ..] => is_whole(answer),
    }
}

fn by_body(at: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] => ask(at.execute_with(&mode("streaming")).query("response_mode=sync")),
        [answer] => {
            streams(answer)?;
            ask(at.execute_with(&mode("sync")).query("response_mode=streaming"))
        }
        [_, answer, ..] => is_whole(answer),
    }
}

fn by_header(at: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] => ask(at.execute_with(&mode("sync")).header(HEADER, "streaming")),
        [answer] => {
            streams(answer)?;
            ask(at.execute_with(&mode("streaming")).header(HEADER, "sync"))
        }
        [_, answer, ..] => is_whole(answer),
    }
}

fn demanding(at: &TestModule) -> ServerRequest {
    at.stream().header(HEADER, "streaming")
}

/// A complete answer with the warnings of a fallback from streaming.
pub(super) fn expect_fallback_warning(answer: &ServerResponse) -> Result<(), CheckEnd> {
    answer.success()?;
    let header = answer.header("x-cognitive-warning").unwrap_or_default();
    ensure(
        header.starts_with("STREAMING_UNAVAILABLE") && header.contains("fallback=sync"),
        || format!("X-Cognitive-Warning is `{header}`, not STREAMING_UNAVAILABLE; fallback=sync; reason=..."),
    )?;
    let warnings = answer.warnings();
    let warned = warnings
        .iter()
        .any(|warning| warning["code"] == "W4010" && warning["fallback_used"] == "sync");
    ensure(warned, || {
        String::from("_warnings has no W4010 with fallback_used sync")
    })
}

fn sync_module(at: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] => ask(demanding(at)),
        [answer, ..] => {
            expect_fallback_warning(answer)?;
            PASSED
        }
    }
}

fn strict(at: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] => {
            let options = json!({"_options": {"response_mode": "streaming", "strict": true}});
            ask(at.stream_with(&options))
        }
        [answer, ..] => {
            answer.envelope()?;
            ensure(answer.code().as_deref() == Some("E4010"), || {
                format!("expected E4010: {}", answer.summary())
            })?;
            PASSED
        }
    }
}

fn streaming_default(at: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] => ask(at.execute()),
        [answer, ..] => streams(answer),
    }
}

fn streaming_sync(at: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] => ask(at.execute().header(HEADER, "sync")),
        [answer, ..] if answer.code().as_deref() == Some("E4010") => PASSED,
        [answer, ..] => {
            expect_fallback_warning(answer)?;
            PASSED
        }
    }
}
