//! Whether a caller gets what it asks for: five signals, the stronger before the weaker, and the table of
//! what happens where a module cannot.

use serde_json::{Value, json};

use crate::conformance::server::response::ServerResponse;
use crate::conformance::server::request::ServerRequest;
use crate::conformance::server::check::{Check, Capability, Next, PASSED, CheckEnd, ask, ensure};
use crate::conformance::server::test_module::TestModule;

const HEADER: &str = "x-cognitive-response-mode";

pub(super) fn checks() -> Vec<Check> {
    let mut checks = signals();
    checks.extend(mismatches());
    checks
}

/// Who is heard first.
fn signals() -> Vec<Check> {
    vec![
        Check::new(
            "negotiation.default",
            "without any signal a module of mode both answers whole",
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
            "the query response_mode wins over Accept",
            Capability::Both,
            by_query,
        ),
        Check::new(
            "negotiation.body",
            "_options.response_mode wins over the query",
            Capability::Both,
            by_body,
        ),
        Check::new(
            "negotiation.header",
            "X-Cognitive-Response-Mode wins over the body",
            Capability::Both,
            by_header,
        ),
    ]
}

/// What happens where a module cannot.
fn mismatches() -> Vec<Check> {
    vec![
        Check::new(
            "negotiation.sync-module",
            "a module of mode sync answers whole when a stream is asked for, and says so in X-Cognitive-Warning and W4010",
            Capability::Sync,
            sync_module,
        ),
        Check::new(
            "negotiation.strict",
            "with _options.strict that is E4010 instead",
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
            "a module of mode streaming that is asked for a whole answer gives E4010, or gives it with a warning",
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

fn by_default(at: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
        [] => ask(at.execute()),
        [answer] => {
            is_whole(answer)?;
            ask(at.execute().header("accept", "*/*"))
        }
        [_, answer, ..] => is_whole(answer),
    }
}

fn by_accept(at: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
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

fn by_query(at: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
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

fn by_body(at: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
        [] => ask(at.execute_with(&mode("streaming")).query("response_mode=sync")),
        [answer] => {
            streams(answer)?;
            ask(at.execute_with(&mode("sync")).query("response_mode=streaming"))
        }
        [_, answer, ..] => is_whole(answer),
    }
}

fn by_header(at: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
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

/// A whole answer that says that it was not what was asked for.
pub(super) fn says_so(answer: &ServerResponse) -> Result<(), CheckEnd> {
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

fn sync_module(at: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
        [] => ask(demanding(at)),
        [answer, ..] => {
            says_so(answer)?;
            PASSED
        }
    }
}

fn strict(at: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
        [] => {
            let options = json!({"_options": {"response_mode": "streaming", "strict": true}});
            ask(at.stream_with(&options))
        }
        [answer, ..] => {
            answer.envelope()?;
            ensure(answer.code().as_deref() == Some("E4010"), || {
                format!("E4010 was expected: {}", answer.summary())
            })?;
            PASSED
        }
    }
}

fn streaming_default(at: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
        [] => ask(at.execute()),
        [answer, ..] => streams(answer),
    }
}

fn streaming_sync(at: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
        [] => ask(at.execute().header(HEADER, "sync")),
        [answer, ..] if answer.code().as_deref() == Some("E4010") => PASSED,
        [answer, ..] => {
            says_so(answer)?;
            PASSED
        }
    }
}
