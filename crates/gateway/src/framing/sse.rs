//! Server-sent events. `id:` stands on chunks only and is their number, so that a browser's
//! `Last-Event-ID` is a place in the stream.

use engine::port::EncodedEvent;

pub(super) fn write(event: &EncodedEvent, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(b"event: ");
    bytes.extend_from_slice(event.kind.as_str().as_bytes());
    if let Some(seq) = event.seq {
        bytes.extend_from_slice(format!("\nid: {seq}").as_bytes());
    }
    // Bodies are JSON on one line: a line break inside a string is written as an escape.
    bytes.extend_from_slice(b"\ndata: ");
    bytes.extend_from_slice(event.body.as_bytes());
    bytes.extend_from_slice(b"\n\n");
}
