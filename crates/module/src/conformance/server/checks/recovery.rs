//! Checks of stream recovery: a client that disconnects mid-stream can resume by headers, body and
//! `Last-Event-ID`; an unknown session or a wrong checkpoint is reported.

use serde_json::{Value, json};

use super::chunks::session;
use crate::conformance::server::check::{
    Capability, Check, CheckEnd, Next, PASSED, ask, ensure, fail, not_applicable, skip,
};
use crate::conformance::server::request::ServerRequest;
use crate::conformance::server::response::{ReceivedEvent, ServerResponse, assemble};
use crate::conformance::server::test_module::TestModule;

const SESSION: &str = "x-cognitive-recovery-session";
const SEQ: &str = "x-cognitive-recovery-seq";
/// A well-formed session id that does not exist.
const UNKNOWN_SESSION: &str = "sess_00000000000000000000000001";
/// Number of chunks after which the client disconnects.
const TAKEN: usize = 2;

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::new(
            "recovery.headers",
            "X-Cognitive-Recovery-Session and -Seq resume an interrupted stream",
            Capability::Both,
            by_headers,
        ),
        Check::new(
            "recovery.body",
            "_recovery with session, seq and checkpoint resumes the stream",
            Capability::Both,
            by_body,
        ),
        Check::new(
            "recovery.last-event-id",
            "GET /v1/runs/{session}/events with Last-Event-ID resumes the stream",
            Capability::Both,
            by_event_id,
        )
        .recommended(),
        Check::new(
            "recovery.end",
            "a stream resumed after its last chunk returns its terminal event",
            Capability::Both,
            at_the_end,
        ),
        Check::new(
            "recovery.mismatch",
            "a checkpoint that does not match restarts the stream at seq 1 with _warnings",
            Capability::Both,
            mismatch,
        ),
        Check::new(
            "recovery.unknown",
            "an unknown session starts a new run with a new session_id",
            Capability::Both,
            unknown,
        ),
        Check::new(
            "recovery.strict-session",
            "with _options.strict an unknown session is E4013",
            Capability::Both,
            strict_session,
        )
        .recommended(),
        Check::new(
            "recovery.strict-checkpoint",
            "with _options.strict a checkpoint that does not match is E4014",
            Capability::Both,
            strict_checkpoint,
        )
        .recommended(),
    ]
}

/// What the client received before it disconnected.
struct PartialStream {
    session: String,
    seq: u64,
    checkpoint: Option<Value>,
    events: Vec<ReceivedEvent>,
}

impl PartialStream {
    /// Up to the first `TAKEN` numbered chunks; later events of the same read are ignored.
    fn cut(answer: &ServerResponse) -> Result<Self, CheckEnd> {
        let mut events = answer.stream()?;
        let numbered = events
            .iter()
            .enumerate()
            .filter(|(_, event)| event.seq().is_some());
        if let Some((last, _)) = numbered.take(TAKEN).last() {
            events.truncate(last + 1);
        }
        Self::of(events)
    }

    fn of(events: Vec<ReceivedEvent>) -> Result<Self, CheckEnd> {
        let session = session(&events)?;
        let Some(last) = events.iter().rev().find(|event| event.seq().is_some()) else {
            return fail("the answer contains no chunks, so there is nothing to resume");
        };
        Ok(Self {
            session,
            seq: last.seq().unwrap_or_default(),
            checkpoint: last.value["chunk"].get("checkpoint").cloned(),
            events,
        })
    }

    fn recovery(&self, checkpoint: Option<&Value>) -> Value {
        let mut recovery = json!({"session_id": self.session, "last_seq": self.seq});
        if let Some(checkpoint) = checkpoint {
            recovery["last_checkpoint"] = checkpoint.clone();
        }
        recovery
    }

    /// Whether `rest` continues directly after the received events, to the terminal event.
    fn expect_continuation(&self, rest: &ServerResponse) -> Next {
        let more = self.resumed(rest)?;
        let first = &more
            .first()
            .map(|event| &event.value)
            .cloned()
            .unwrap_or_default();
        let next = self.seq + 1;
        ensure(first["resumed"] == true, || {
            String::from("the first event lacks `resumed: true`")
        })?;
        ensure(first["resume_from_seq"] == next, || {
            format!("resume_from_seq is {}, not {next}", first["resume_from_seq"])
        })?;
        if let Some(seq) = more.iter().find_map(ReceivedEvent::seq) {
            ensure(seq == next, || {
                format!("the resumed stream begins with seq {seq}, not {next}")
            })?;
        }
        let partial = self.events.iter().filter(|event| !event.is_last());
        let lines: Vec<String> = partial
            .chain(&more)
            .map(|event| event.value.to_string())
            .collect();
        let whole = assemble(lines.join("\n").as_bytes())?;
        ensure(whole.is_ok(), || {
            format!("the stream ended with {}", whole.envelope["error"])
        })?;
        PASSED
    }

    /// The events of a stream of the same session.
    fn resumed(&self, rest: &ServerResponse) -> Result<Vec<ReceivedEvent>, CheckEnd> {
        supported(rest)?;
        let more = rest.stream()?;
        let now = session(&more)?;
        ensure(now == self.session, || {
            format!("session {} was requested, {now} was returned", self.session)
        })?;
        Ok(more)
    }

    /// A checkpoint with a wrong hash.
    fn wrong_checkpoint(&self) -> Value {
        let hash = self
            .checkpoint
            .as_ref()
            .and_then(|checkpoint| checkpoint["hash"].as_str());
        let wrong = if hash == Some("000000") {
            "111111"
        } else {
            "000000"
        };
        let offset = self
            .checkpoint
            .as_ref()
            .map_or_else(|| json!(1), |checkpoint| checkpoint["offset"].clone());
        json!({"offset": offset, "hash": wrong})
    }
}

/// With E4012 the server declares that it does not support recovery; the check does not apply.
fn supported(answer: &ServerResponse) -> Result<(), CheckEnd> {
    match answer.code().as_deref() {
        Some("E4012") => not_applicable("the server declares that it does not support recovery (E4012)"),
        _ => Ok(()),
    }
}

/// A stream from which the client disconnects after `TAKEN` chunks.
fn cut(at: &TestModule) -> ServerRequest {
    at.stream().until(TAKEN)
}

/// The received events up to the last chunk that has a checkpoint.
fn with_checkpoint(answer: &ServerResponse) -> Result<PartialStream, CheckEnd> {
    let mut partial = PartialStream::of(answer.stream()?)?;
    let proved = |event: &ReceivedEvent| event.value["chunk"].get("checkpoint").is_some();
    let Some(last) = partial.events.iter().rposition(proved) else {
        return skip("no chunk has a checkpoint");
    };
    partial.events.truncate(last + 1);
    let chunk = partial
        .events
        .last()
        .map(|event| event.value["chunk"].clone())
        .unwrap_or_default();
    partial.seq = chunk["seq"].as_u64().unwrap_or_default();
    partial.checkpoint = chunk.get("checkpoint").cloned();
    Ok(partial)
}

fn by_headers(at: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] => ask(cut(at)),
        [first] => {
            let partial = PartialStream::cut(first)?;
            ask(at
                .stream()
                .header(SESSION, partial.session)
                .header(SEQ, partial.seq.to_string()))
        }
        [first, rest, ..] => PartialStream::cut(first)?.expect_continuation(rest),
    }
}

fn by_body(at: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] => ask(cut(at)),
        [first] => {
            let partial = PartialStream::cut(first)?;
            let recovery = partial.recovery(partial.checkpoint.as_ref());
            ask(at.stream_with(&json!({"_recovery": recovery})))
        }
        [first, rest, ..] => PartialStream::cut(first)?.expect_continuation(rest),
    }
}

fn by_event_id(at: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] => ask(cut(at)),
        [first] => {
            let partial = PartialStream::cut(first)?;
            let events = ServerRequest::get(format!("/v1/runs/{}/events", partial.session));
            ask(events
                .header("accept", "text/event-stream")
                .header("last-event-id", partial.seq.to_string()))
        }
        [first, rest, ..] => PartialStream::cut(first)?.expect_continuation(rest),
    }
}

fn at_the_end(at: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] => ask(at.stream()),
        [first] => {
            let partial = PartialStream::of(first.stream()?)?;
            ask(at.stream_with(&json!({"_recovery": partial.recovery(None)})))
        }
        [first, rest, ..] => {
            let partial = PartialStream::of(first.stream()?)?;
            partial.expect_continuation(rest)?;
            let again = rest.events();
            let (before, now) = (partial.events.last(), again.last());
            ensure(
                before.map(|event| &event.value) == now.map(|event| &event.value),
                || String::from("the terminal event differs from the one sent before"),
            )?;
            PASSED
        }
    }
}

fn mismatch(at: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] => ask(at.stream()),
        [first] => {
            let partial = with_checkpoint(first)?;
            let recovery = partial.recovery(Some(&partial.wrong_checkpoint()));
            ask(at.stream_with(&json!({"_recovery": recovery})))
        }
        [first, rest, ..] => {
            let partial = with_checkpoint(first)?;
            let more = partial.resumed(rest)?;
            let seq = more.iter().find_map(ReceivedEvent::seq);
            ensure(seq == Some(1), || {
                format!("the stream begins with seq {seq:?}, not with 1")
            })?;
            ensure(!rest.warnings().is_empty(), || {
                String::from("_warnings is missing")
            })?;
            assemble(&rest.body)?;
            PASSED
        }
    }
}

fn unknown_session_request(more: &Value) -> Value {
    let mut body = json!({"_recovery": {"session_id": UNKNOWN_SESSION, "last_seq": 3}});
    if let Some(options) = more.get("_options") {
        body["_options"] = options.clone();
    }
    body
}

fn unknown(at: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] => ask(at.stream_with(&unknown_session_request(&json!({})))),
        [answer, ..] => {
            supported(answer)?;
            let events = answer.stream()?;
            let now = session(&events)?;
            ensure(now != UNKNOWN_SESSION, || {
                String::from("an unknown session was resumed")
            })?;
            let seq = events.iter().find_map(ReceivedEvent::seq);
            ensure(seq == Some(1), || {
                format!("the stream begins with seq {seq:?}, not with 1")
            })?;
            assemble(&answer.body)?;
            PASSED
        }
    }
}

fn strict_session(at: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] => ask(at.stream_with(&unknown_session_request(&json!({"_options": {"strict": true}})))),
        [answer, ..] => expect(answer, "E4013"),
    }
}

fn strict_checkpoint(at: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] => ask(at.stream()),
        [first] => {
            let partial = with_checkpoint(first)?;
            let recovery = partial.recovery(Some(&partial.wrong_checkpoint()));
            ask(at.stream_with(&json!({"_recovery": recovery, "_options": {"strict": true}})))
        }
        [_, answer, ..] => expect(answer, "E4014"),
    }
}

fn expect(answer: &ServerResponse, code: &str) -> Next {
    supported(answer)?;
    ensure(answer.code().as_deref() == Some(code), || {
        format!("expected {code}: {}", answer.summary())
    })?;
    PASSED
}
