//! One JSON document on each line.

use engine::port::Rendered;

pub(super) fn write(event: &Rendered, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(event.body.as_bytes());
    bytes.push(b'\n');
}
