//! Checks of streams as sequences of chunks: the form of each chunk, the numbering, the folded result, and
//! that every transport delivers the same chunks.

use serde_json::{Value, json};

use crate::conformance::server::check::{Capability, Check, CheckEnd, Next, PASSED, ask, ensure, fail, skip};
use crate::conformance::server::request::ServerRequest;
use crate::conformance::server::response::{ReceivedEvent, ServerResponse, assemble};
use crate::conformance::server::test_module::TestModule;
use crate::stream::check_chunk;

pub(super) fn checks() -> Vec<Check> {
    let mut checks = of_streams();
    checks.extend(of_forms().into_iter().map(Check::recommended));
    checks
}

/// Rules for every stream.
fn of_streams() -> Vec<Check> {
    vec![
        Check::new(
            "chunks.shape",
            "every event is a valid chunk of one of the six kinds",
            Capability::Both,
            shape,
        ),
        Check::new(
            "chunks.meta",
            "the first event is a meta chunk with streaming true and a session_id",
            Capability::Both,
            begins,
        ),
        Check::new(
            "chunks.seq",
            "seq counts from 1 without gaps",
            Capability::Both,
            numbered,
        ),
        Check::new(
            "chunks.end",
            "exactly one final or error ends the stream",
            Capability::Both,
            ends,
        ),
        Check::new(
            "chunks.fold",
            "the chunks fold to the data of the final chunk, and every checkpoint matches",
            Capability::Both,
            folds,
        ),
        Check::new(
            "chunks.same",
            "the stream ends with the data of a complete answer",
            Capability::Both,
            same,
        )
        .recommended(),
        Check::new(
            "chunks.session",
            "two streams have two sessions",
            Capability::Both,
            sessions,
        ),
    ]
}

/// Transports and chunk types of a stream.
fn of_forms() -> Vec<Check> {
    vec![
        Check::new(
            "chunks.sse",
            "server-sent events are named after their kind, and the id of a chunk is its seq",
            Capability::Both,
            framed,
        ),
        Check::new(
            "chunks.snapshot",
            "_options.chunk_type snapshot gives snapshots",
            Capability::Both,
            snapshots,
        ),
        Check::new(
            "chunks.ndjson",
            "Accept: application/x-ndjson gives the same chunks, one on each line",
            Capability::Both,
            ndjson,
        ),
        Check::new(
            "chunks.websocket",
            "a WebSocket at /v1/ws gives the same chunks",
            Capability::Both,
            socket,
        ),
    ]
}

fn shape(at: &TestModule, responses: &[ServerResponse]) -> Next {
    let [answer, ..] = responses else {
        return ask(at.stream());
    };
    for event in answer.stream()? {
        if let Some(violation) = check_chunk(&event.value).first() {
            return fail(violation.to_string());
        }
    }
    PASSED
}

fn begins(at: &TestModule, responses: &[ServerResponse]) -> Next {
    let [answer, ..] = responses else {
        return ask(at.stream());
    };
    session(&answer.stream()?)?;
    PASSED
}

/// The session id of the first event.
pub(super) fn session(events: &[ReceivedEvent]) -> Result<String, CheckEnd> {
    let Some(first) = events.first() else {
        return fail("the stream has no events");
    };
    let id = first.value.get("session_id").and_then(Value::as_str);
    match id {
        Some(id) if first.value["streaming"] == true && first.value["ok"] == true => Ok(String::from(id)),
        _ => fail(format!("the first event is not a meta chunk: {}", first.value)),
    }
}

fn numbered(at: &TestModule, responses: &[ServerResponse]) -> Next {
    let [answer, ..] = responses else {
        return ask(at.stream());
    };
    let events = answer.stream()?;
    let seqs: Vec<u64> = events.iter().filter_map(ReceivedEvent::seq).collect();
    for (seq, expected) in seqs.iter().zip(1..) {
        ensure(*seq == expected, || format!("seq is {seq}, expected {expected}"))?;
    }
    if seqs.is_empty() {
        return fail("the answer contains no chunks");
    }
    PASSED
}

fn ends(at: &TestModule, responses: &[ServerResponse]) -> Next {
    let [answer, ..] = responses else {
        return ask(at.stream());
    };
    let events = answer.stream()?;
    let last = events.iter().filter(|event| event.is_last()).count();
    ensure(last == 1, || format!("{last} terminal events in the stream"))?;
    ensure(events.last().is_some_and(ReceivedEvent::is_last), || {
        String::from("an event follows the terminal event")
    })?;
    PASSED
}

fn folds(at: &TestModule, responses: &[ServerResponse]) -> Next {
    let [answer, ..] = responses else {
        return ask(at.stream());
    };
    answer.stream()?;
    let assembled = assemble(&answer.body)?;
    ensure(assembled.is_ok(), || {
        format!("the stream ended with {}", assembled.envelope["error"])
    })?;
    for event in answer.events() {
        let is_delta = event.value["chunk"]["type"] == "delta";
        let proved = event.value["chunk"].get("checkpoint").is_some();
        ensure(!is_delta || proved, || {
            format!("delta {} has no checkpoint", event.seq().unwrap_or_default())
        })?;
    }
    PASSED
}

/// Models need not give the same answer twice: the stream is compared only if two complete answers are equal.
fn same(at: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] | [_] => ask(at.execute().header("accept", "application/json")),
        [_, _] => ask(at.stream()),
        [first, second, stream, ..] => {
            let (first, second) = (first.success()?, second.success()?);
            if first["data"] != second["data"] {
                return skip("the module gives different answers to the same input");
            }
            stream.stream()?;
            let folded = assemble(&stream.body)?.envelope;
            ensure(folded["data"] == first["data"], || {
                format!(
                    "the data of the stream is {}, that of the complete answer {}",
                    folded["data"], first["data"]
                )
            })?;
            PASSED
        }
    }
}

fn sessions(at: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] | [_] => ask(at.stream().until(1)),
        [first, second, ..] => {
            let (first, second) = (session(&first.stream()?)?, session(&second.stream()?)?);
            ensure(first != second, || format!("both have the session {first}"))?;
            PASSED
        }
    }
}

fn framed(at: &TestModule, responses: &[ServerResponse]) -> Next {
    let [answer, ..] = responses else {
        return ask(at.stream());
    };
    for event in answer.stream()? {
        let (name, kind) = (event.name.as_deref(), event.kind());
        ensure(name == Some(kind), || {
            format!("the event name of a {kind} event is {name:?}")
        })?;
        let seq = event.seq().map(|seq| seq.to_string());
        ensure(event.id == seq, || {
            format!("the id is {:?} and the seq {seq:?}", event.id)
        })?;
    }
    PASSED
}

fn snapshots(at: &TestModule, responses: &[ServerResponse]) -> Next {
    let [answer, ..] = responses else {
        return ask(at.stream_with(&json!({"_options": {"chunk_type": "snapshot"}})));
    };
    let events = answer.stream()?;
    assemble(&answer.body)?;
    let numbered: Vec<&ReceivedEvent> = events.iter().filter(|event| event.seq().is_some()).collect();
    let all = numbered
        .iter()
        .all(|event| event.value["chunk"]["type"] == "snapshot");
    ensure(all && !numbered.is_empty(), || {
        String::from("received chunks other than snapshots")
    })?;
    PASSED
}

fn ndjson(at: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] => ask(at.execute().header("accept", "application/x-ndjson")),
        [answer, ..] if !answer.is_stream() && answer.status == 406 => skip("NDJSON is not supported"),
        [answer, ..] => {
            let kind = answer.header("content-type").unwrap_or_default();
            ensure(kind.starts_with("application/x-ndjson"), || {
                format!("the content type is `{kind}`")
            })?;
            whole_stream(answer)
        }
    }
}

fn socket(at: &TestModule, responses: &[ServerResponse]) -> Next {
    match responses {
        [] => {
            let message = json!({"type": "execute", "id": "check", "module": at.name, "input": at.input});
            ask(ServerRequest::socket(message))
        }
        [answer, ..] if answer.status != 101 => skip(format!("no WebSocket at /v1/ws: {}", answer.summary())),
        [answer, ..] => whole_stream(answer),
    }
}

/// A stream in any framing whose events fold to a successful envelope.
fn whole_stream(answer: &ServerResponse) -> Next {
    let events = answer.events();
    session(&events)?;
    let lines: Vec<String> = events.iter().map(|event| event.value.to_string()).collect();
    let assembled = assemble(lines.join("\n").as_bytes())?;
    ensure(assembled.is_ok(), || {
        format!("the stream ended with {}", assembled.envelope["error"])
    })?;
    PASSED
}
