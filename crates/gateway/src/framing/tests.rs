use std::sync::Arc;

use engine::port::{EncodedEvent, EventKind};

use super::Framing;

#[test]
fn only_chunks_have_an_id() {
    let event = |kind, seq| EncodedEvent {
        kind,
        seq,
        body: Arc::from("{}"),
    };
    let events = [
        event(EventKind::Meta, None),
        event(EventKind::Chunk, Some(7)),
        event(EventKind::Final, None),
    ];
    let sse = String::from_utf8(Framing::Sse.frame(&events)).unwrap();
    assert_eq!(
        sse,
        "event: meta\ndata: {}\n\nevent: chunk\nid: 7\ndata: {}\n\nevent: final\ndata: {}\n\n"
    );
    assert_eq!(Framing::Ndjson.frame(&events), b"{}\n{}\n{}\n");
}
