//! NDJSON: one JSON document per line.

use engine::port::EncodedEvent;

pub(super) fn write(event: &EncodedEvent, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(event.body.as_bytes());
    bytes.push(b'\n');
}
