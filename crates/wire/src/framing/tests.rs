//! Input split at any position gives the same events; edge cases of the standard; the size limit.

use proptest::prelude::*;

use super::*;
use crate::limits::EVENT_BYTES_MAX;
use crate::steps::assert_linear;

fn cut(framing: &Framing, pieces: &[&[u8]]) -> Vec<(String, String)> {
    let mut framing = framing.clone();
    let mut frames = Vec::new();
    let mut sink = |frame: Frame<'_>| frames.push((String::from(frame.name), String::from(frame.data)));
    for piece in pieces {
        framing.push(piece, &mut sink).unwrap();
    }
    framing.finish(&mut sink);
    frames
}

fn sse(text: &str) -> Vec<(String, String)> {
    cut(&Framing::Sse(Sse::new()), &[text.as_bytes()])
}

fn event(name: &str, data: &str) -> (String, String) {
    (String::from(name), String::from(data))
}

#[test]
fn sse_edge_cases() {
    assert_eq!(sse("\u{feff}data: a\n\n"), [event("", "a")]);
    assert_eq!(
        sse("data: a\r\n\r\ndata:b\r\rdata: c\n\n"),
        [event("", "a"), event("", "b"), event("", "c")]
    );
    assert_eq!(
        sse(": hello\nevent: x\ndata: 1\ndata: 2\nid: 7\n\n"),
        [event("x", "1\n2")]
    );
    assert_eq!(sse("event: lonely\n\ndata\n\n"), [event("", "")]);
    assert_eq!(sse("data:  two spaces\n\n"), [event("", " two spaces")]);
    assert_eq!(sse("data: no end"), [event("", "no end")]);
    assert_eq!(
        sse("data: a\n{\"error\":1}\n"),
        [event("", "a"), event("", "{\"error\":1}")]
    );
    assert_eq!(sse(""), []);
}

#[test]
fn rejects_event_over_size_limit() {
    for mut framing in [Framing::Sse(Sse::new()), Framing::Ndjson(Ndjson::new())] {
        let piece = vec![b'x'; EVENT_BYTES_MAX / 4];
        let mut results = Vec::new();
        for _ in 0..6 {
            results.push(framing.push(&piece, &mut |_| {}));
        }
        assert_eq!(results.last(), Some(&Err(TooLarge)));
    }
}

proptest! {
    #[test]
    fn split_positions_do_not_change_events(text in "(data: ?|event: |:|id|[a-zé{}\"]{0,3}|\r|\n|\r\n){0,24}", size in 1_usize..7) {
        let bytes = text.as_bytes();
        for framing in [Framing::Sse(Sse::new()), Framing::Ndjson(Ndjson::new())] {
            let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
            prop_assert_eq!(cut(&framing, &pieces), cut(&framing, &[bytes]));
        }
    }

    #[test]
    fn written_events_roundtrip(events in prop::collection::vec(("[a-z.]{0,8}", "[^\r]{0,20}"), 0..6)) {
        let mut out = Vec::new();
        for (name, data) in &events {
            Sse::write(&mut out, name, data);
        }
        prop_assert_eq!(cut(&Framing::Sse(Sse::new()), &[&out]), events);
    }
}

#[test]
fn arbitrary_bytes_do_not_panic() {
    bolero::check!().with_iterations(2000).for_each(|bytes: &[u8]| {
        for mut framing in [Framing::Sse(Sse::new()), Framing::Ndjson(Ndjson::new())] {
            framing.push(bytes, &mut |_| {}).unwrap();
            framing.finish(&mut |_| {});
        }
    });
}

/// Hostile streams: one endless line or event, many small events, many lines of one event; in pieces of one
/// byte and of many.
#[test]
fn framings_take_linear_time() {
    let streams: [fn(usize) -> Vec<u8>; 6] = [
        |size| vec![b'a'; size],
        |size| b"data: x\n\n".repeat(size / 9 + 1),
        |size| b"data:\n".repeat(size / 6 + 1),
        |size| b"\r\n".repeat(size / 2 + 1),
        |size| [b"[", b"{},".repeat(size / 3 + 1).as_slice()].concat(),
        |size| [b"[\"".as_slice(), &vec![b'\\'; size]].concat(),
    ];
    for dialect in [Dialect::OpenaiChat, Dialect::Gemini, Dialect::Ollama] {
        for stream in streams {
            for piece in [1, 4_096] {
                assert_linear(64 * 1024, |size| {
                    let mut framing = Framing::of(dialect).unwrap();
                    for piece in stream(size).chunks(piece) {
                        framing.push(piece, &mut |_| {}).unwrap();
                    }
                    framing.finish(&mut |_| {});
                });
            }
        }
    }
}
