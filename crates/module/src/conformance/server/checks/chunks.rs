//! Streams as sequences of chunks: what each looks like, how they are numbered, what they add up to, and
//! that every transport says the same.

use serde_json::{Value, json};

use crate::conformance::server::response::{ServerResponse, ReceivedEvent, assemble};
use crate::conformance::server::request::ServerRequest;
use crate::conformance::server::check::{Check, Capability, Next, PASSED, CheckEnd, ask, fail, ensure, skip};
use crate::conformance::server::test_module::TestModule;
use crate::stream::check_chunk;

pub(super) fn checks() -> Vec<Check> {
    let mut checks = of_streams();
    checks.extend(of_forms().into_iter().map(Check::recommended));
    checks
}

/// What every stream keeps.
fn of_streams() -> Vec<Check> {
    vec![
        Check::new(
            "chunks.shape",
            "every event is one of the six kinds of chunk, without fault",
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
            "the chunks add up to the data of the final chunk, and every checkpoint is right",
            Capability::Both,
            folds,
        ),
        Check::new(
            "chunks.same",
            "the stream ends in what a whole answer says",
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

/// The forms that a stream can be had in.
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

fn shape(at: &TestModule, heard: &[ServerResponse]) -> Next {
    let [answer, ..] = heard else {
        return ask(at.stream());
    };
    for event in answer.stream()? {
        if let Some(violation) = check_chunk(&event.value).first() {
            return fail(violation.to_string());
        }
    }
    PASSED
}

fn begins(at: &TestModule, heard: &[ServerResponse]) -> Next {
    let [answer, ..] = heard else {
        return ask(at.stream());
    };
    session(&answer.stream()?)?;
    PASSED
}

/// The session that the first event names.
pub(super) fn session(events: &[ReceivedEvent]) -> Result<String, CheckEnd> {
    let Some(first) = events.first() else {
        return fail("the stream has no events");
    };
    let id = first.value.get("session_id").and_then(Value::as_str);
    match id {
        Some(id) if first.value["streaming"] == true && first.value["ok"] == true => Ok(String::from(id)),
        _ => fail(format!("the first event is no meta chunk: {}", first.value)),
    }
}

fn numbered(at: &TestModule, heard: &[ServerResponse]) -> Next {
    let [answer, ..] = heard else {
        return ask(at.stream());
    };
    let events = answer.stream()?;
    let seqs: Vec<u64> = events.iter().filter_map(ReceivedEvent::seq).collect();
    for (seq, expected) in seqs.iter().zip(1..) {
        ensure(*seq == expected, || {
            format!("seq {seq} stands where {expected} should")
        })?;
    }
    if seqs.is_empty() {
        return fail("the answer came without chunks");
    }
    PASSED
}

fn ends(at: &TestModule, heard: &[ServerResponse]) -> Next {
    let [answer, ..] = heard else {
        return ask(at.stream());
    };
    let events = answer.stream()?;
    let last = events.iter().filter(|event| event.is_last()).count();
    ensure(last == 1, || format!("{last} events end the stream"))?;
    ensure(events.last().is_some_and(ReceivedEvent::is_last), || {
        String::from("something follows the end")
    })?;
    PASSED
}

fn folds(at: &TestModule, heard: &[ServerResponse]) -> Next {
    let [answer, ..] = heard else {
        return ask(at.stream());
    };
    answer.stream()?;
    let assembled = assemble(&answer.body)?;
    ensure(assembled.is_ok(), || {
        format!("the stream ended in {}", assembled.envelope["error"])
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

/// Models need not say the same twice: only where two whole answers are the same is the third compared.
fn same(at: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
        [] | [_] => ask(at.execute().header("accept", "application/json")),
        [_, _] => ask(at.stream()),
        [first, second, stream, ..] => {
            let (first, second) = (first.success()?, second.success()?);
            if first["data"] != second["data"] {
                return skip("the module answers differently each time");
            }
            stream.stream()?;
            let folded = assemble(&stream.body)?.envelope;
            ensure(folded["data"] == first["data"], || {
                format!(
                    "the stream says {}, the whole answer {}",
                    folded["data"], first["data"]
                )
            })?;
            PASSED
        }
    }
}

fn sessions(at: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
        [] | [_] => ask(at.stream().until(1)),
        [first, second, ..] => {
            let (first, second) = (session(&first.stream()?)?, session(&second.stream()?)?);
            ensure(first != second, || format!("both are {first}"))?;
            PASSED
        }
    }
}

fn framed(at: &TestModule, heard: &[ServerResponse]) -> Next {
    let [answer, ..] = heard else {
        return ask(at.stream());
    };
    for event in answer.stream()? {
        let (name, kind) = (event.name.as_deref(), event.kind());
        ensure(name == Some(kind), || format!("a {kind} is called {name:?}"))?;
        let seq = event.seq().map(|seq| seq.to_string());
        ensure(event.id == seq, || {
            format!("the id is {:?} and the seq {seq:?}", event.id)
        })?;
    }
    PASSED
}

fn snapshots(at: &TestModule, heard: &[ServerResponse]) -> Next {
    let [answer, ..] = heard else {
        return ask(at.stream_with(&json!({"_options": {"chunk_type": "snapshot"}})));
    };
    let events = answer.stream()?;
    assemble(&answer.body)?;
    let numbered: Vec<&ReceivedEvent> = events.iter().filter(|event| event.seq().is_some()).collect();
    let all = numbered
        .iter()
        .all(|event| event.value["chunk"]["type"] == "snapshot");
    ensure(all && !numbered.is_empty(), || {
        String::from("other chunks than snapshots came")
    })?;
    PASSED
}

fn ndjson(at: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
        [] => ask(at.execute().header("accept", "application/x-ndjson")),
        [answer, ..] if !answer.is_stream() && answer.status == 406 => skip("the server has no NDJSON"),
        [answer, ..] => {
            let kind = answer.header("content-type").unwrap_or_default();
            ensure(kind.starts_with("application/x-ndjson"), || {
                format!("the content type is `{kind}`")
            })?;
            whole_stream(answer)
        }
    }
}

fn socket(at: &TestModule, heard: &[ServerResponse]) -> Next {
    match heard {
        [] => {
            let message = json!({"type": "execute", "id": "check", "module": at.name, "input": at.input});
            ask(ServerRequest::socket(message))
        }
        [answer, ..] if answer.status != 101 => skip(format!("no WebSocket there: {}", answer.summary())),
        [answer, ..] => whole_stream(answer),
    }
}

/// A stream of any framing, whose events add up.
fn whole_stream(answer: &ServerResponse) -> Next {
    let events = answer.events();
    session(&events)?;
    let lines: Vec<String> = events.iter().map(|event| event.value.to_string()).collect();
    let assembled = assemble(lines.join("\n").as_bytes())?;
    ensure(assembled.is_ok(), || {
        format!("the stream ended in {}", assembled.envelope["error"])
    })?;
    PASSED
}
