//! Server-sent events. Only chunks have an `id:`, their sequence number, so that the `Last-Event-ID` of a
//! browser is a resume point.

use engine::port::EncodedEvent;

pub(super) fn write(event: &EncodedEvent, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(b"event: ");
    bytes.extend_from_slice(event.kind.as_str().as_bytes());
    if let Some(seq) = event.seq {
        bytes.extend_from_slice(format!("\nid: {seq}").as_bytes());
    }
    // Bodies are single-line JSON: line breaks in strings are escaped.
    bytes.extend_from_slice(b"\ndata: ");
    bytes.extend_from_slice(event.body.as_bytes());
    bytes.extend_from_slice(b"\n\n");
}
