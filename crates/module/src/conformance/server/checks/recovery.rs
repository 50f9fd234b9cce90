//! Streams that broke off: a caller that hangs up in the middle gets the rest by every way of asking, and
//! one whose place is not known is told so.

use serde_json::{Value, json};

use super::chunks::session;
use crate::conformance::server::response::{ServerResponse, ReceivedEvent, assemble};
use crate::conformance::server::request::ServerRequest;
use crate::conformance::server::check::{Check, Capability, Next, PASSED, CheckEnd, ask, not_applicable, fail, ensure, skip};
use crate::conformance::server::test_module::TestModule;

const SESSION: &str = "x-cognitive-recovery-session";
const SEQ: &str = "x-cognitive-recovery-seq";
/// Well formed, and nobody's.
const NOBODY: &str = "sess_00000000000000000000000001";
/// Chunks after which the caller hangs up.
const TAKEN: usize = 2;

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::new(
            "recovery.headers",
            "X-Cognitive-Recovery-Session and -Seq give the rest of a stream that broke off",
            Capability::Both,
            by_headers,
        ),
        Check::new(
            "recovery.body",
            "_recovery with session, seq and checkpoint gives the rest",
            Capability::Both,
            by_body,
        ),
        Check::new(
            "recovery.last-event-id",
            "GET /v1/runs/{session}/events with Last-Event-ID gives the rest",
            Capability::Both,
            by_event_id,
        )
        .recommended(),
        Check::new(
            "recovery.end",
            "behind its last chunk a stream gives its end",
            Capability::Both,
            at_the_end,
        ),
        Check::new(
            "recovery.mismatch",
            "a checkpoint that does not match starts over at seq 1 with _warnings",
            Capability::Both,
            mismatch,
        ),
        Check::new(
            "recovery.unknown",
            "a session that is not there starts anew under a new session_id",
            Capability::Both,
            unknown,
        ),
        Check::new(
            "recovery.strict-session",
            "with _options.strict that is E4013",
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

/// What a caller holds that was cut off.
struct PartialStream {
    session: String,
    seq: u64,
    checkpoint: Option<Value>,
    events: Vec<ReceivedEvent>,
}

impl PartialStream {
    /// Of a caller that left after a few chunks. What came behind them, in the same piece, was not taken.
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
            return fail("the answer came without chunks, so there is nothing to go on from");
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

    /// Whether the rest goes on exactly behind what is held, to the end.
    fn goes_on(&self, rest: &ServerResponse) -> Next {
        let more = self.resumed(rest)?;
        let first = &more
            .first()
            .map(|event| &event.value)
            .cloned()
            .unwrap_or_default();
        let next = self.seq + 1;
        ensure(first["resumed"] == true, || {
            String::from("the first event does not say `resumed`")
        })?;
        ensure(first["resume_from_seq"] == next, || {
            format!("resume_from_seq is {}, not {next}", first["resume_from_seq"])
        })?;
        if let Some(seq) = more.iter().find_map(ReceivedEvent::seq) {
            ensure(seq == next, || {
                format!("the rest begins with seq {seq}, not {next}")
            })?;
        }
        let held = self.events.iter().filter(|event| !event.is_last());
        let lines: Vec<String> = held.chain(&more).map(|event| event.value.to_string()).collect();
        let whole = assemble(lines.join("\n").as_bytes())?;
        ensure(whole.is_ok(), || {
            format!("it ended in {}", whole.envelope["error"])
        })?;
        PASSED
    }

    /// The events of a stream of the same session.
    fn resumed(&self, rest: &ServerResponse) -> Result<Vec<ReceivedEvent>, CheckEnd> {
        supported(rest)?;
        let more = rest.stream()?;
        let now = session(&more)?;
        ensure(now == self.session, || {
            format!("session {} was asked for, and {now} came", self.session)
        })?;
        Ok(more)
    }

    /// One whose hash is another.
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

/// E4012 is an honest answer: then there is nothing more to find out.
fn supported(answer: &ServerResponse) -> Result<(), CheckEnd> {
    match answer.code().as_deref() {
        Some("E4012") => not_applicable("the server says that it does not recover (E4012)"),
        _ => Ok(()),
    }
}

/// A stream that its caller leaves in the middle.
fn cut(at: &TestModule) -> ServerRequest {
    at.stream().until(TAKEN)
}

/// One that stops behind a delta, whose checkpoint can be got wrong.
fn with_checkpoint(answer: &ServerResponse) -> Result<PartialStream, CheckEnd> {
    let mut held = PartialStream::of(answer.stream()?)?;
    let proved = |event: &ReceivedEvent| event.value["chunk"].get("checkpoint").is_some();
    let Some(last) = held.events.iter().rposition(proved) else {
        return skip("no chunk came with a checkpoint");
    };
    held.events.truncate(last + 1);
    let chunk = held
        .events
        .last()
        .map(|event| event.value["chunk"].clone())
        .unwrap_or_default();
    held.seq = chunk["seq"].as_u64().unwrap_or_default();
    held.checkpoint = chunk.get("checkpoint").cloned();
    Ok(held)
}

fn by_headers(at: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
        [] => ask(cut(at)),
        [first] => {
            let held = PartialStream::cut(first)?;
            ask(at
                .stream()
                .header(SESSION, held.session)
                .header(SEQ, held.seq.to_string()))
        }
        [first, rest, ..] => PartialStream::cut(first)?.goes_on(rest),
    }
}

fn by_body(at: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
        [] => ask(cut(at)),
        [first] => {
            let held = PartialStream::cut(first)?;
            let recovery = held.recovery(held.checkpoint.as_ref());
            ask(at.stream_with(&json!({"_recovery": recovery})))
        }
        [first, rest, ..] => PartialStream::cut(first)?.goes_on(rest),
    }
}

fn by_event_id(at: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
        [] => ask(cut(at)),
        [first] => {
            let held = PartialStream::cut(first)?;
            let events = ServerRequest::get(format!("/v1/runs/{}/events", held.session));
            ask(events
                .header("accept", "text/event-stream")
                .header("last-event-id", held.seq.to_string()))
        }
        [first, rest, ..] => PartialStream::cut(first)?.goes_on(rest),
    }
}

fn at_the_end(at: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
        [] => ask(at.stream()),
        [first] => {
            let held = PartialStream::of(first.stream()?)?;
            ask(at.stream_with(&json!({"_recovery": held.recovery(None)})))
        }
        [first, rest, ..] => {
            let held = PartialStream::of(first.stream()?)?;
            held.goes_on(rest)?;
            let again = rest.events();
            let (before, now) = (held.events.last(), again.last());
            ensure(
                before.map(|event| &event.value) == now.map(|event| &event.value),
                || String::from("the end is not the one that was sent before"),
            )?;
            PASSED
        }
    }
}

fn mismatch(at: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
        [] => ask(at.stream()),
        [first] => {
            let held = with_checkpoint(first)?;
            let recovery = held.recovery(Some(&held.wrong_checkpoint()));
            ask(at.stream_with(&json!({"_recovery": recovery})))
        }
        [first, rest, ..] => {
            let held = with_checkpoint(first)?;
            let more = held.resumed(rest)?;
            let seq = more.iter().find_map(ReceivedEvent::seq);
            ensure(seq == Some(1), || {
                format!("it begins with seq {seq:?}, not with 1")
            })?;
            ensure(!rest.warnings().is_empty(), || {
                String::from("there are no _warnings")
            })?;
            assemble(&rest.body)?;
            PASSED
        }
    }
}

fn lost(more: &Value) -> Value {
    let mut body = json!({"_recovery": {"session_id": NOBODY, "last_seq": 3}});
    if let Some(options) = more.get("_options") {
        body["_options"] = options.clone();
    }
    body
}

fn unknown(at: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
        [] => ask(at.stream_with(&lost(&json!({})))),
        [answer, ..] => {
            supported(answer)?;
            let events = answer.stream()?;
            let now = session(&events)?;
            ensure(now != NOBODY, || {
                String::from("the session that is not there was taken up")
            })?;
            let seq = events.iter().find_map(ReceivedEvent::seq);
            ensure(seq == Some(1), || {
                format!("it begins with seq {seq:?}, not with 1")
            })?;
            assemble(&answer.body)?;
            PASSED
        }
    }
}

fn strict_session(at: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
        [] => ask(at.stream_with(&lost(&json!({"_options": {"strict": true}})))),
        [answer, ..] => expect(answer, "E4013"),
    }
}

fn strict_checkpoint(at: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
        [] => ask(at.stream()),
        [first] => {
            let held = with_checkpoint(first)?;
            let recovery = held.recovery(Some(&held.wrong_checkpoint()));
            ask(at.stream_with(&json!({"_recovery": recovery, "_options": {"strict": true}})))
        }
        [_, answer, ..] => expect(answer, "E4014"),
    }
}

fn expect(answer: &ServerResponse, code: &str) -> Next {
    supported(answer)?;
    ensure(answer.code().as_deref() == Some(code), || {
        format!("{code} was expected: {}", answer.summary())
    })?;
    PASSED
}
