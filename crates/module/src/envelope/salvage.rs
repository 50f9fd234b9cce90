//! What is whole in a JSON text that was cut off: every member and item that was finished, inside the
//! brackets that were open. Nothing is guessed: a string or number without its end is left out.

use serde_json::{Map, Value};

use crate::limits;

/// The object that `text` begins, as far as it got. `None` when nothing in it was finished.
pub(super) fn salvage(text: &[u8]) -> Option<Map<String, Value>> {
    let mut open: Vec<u8> = Vec::new();
    let mut cut = None;
    let (mut in_string, mut escaped) = (false, false);
    for (index, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                open.push(if *byte == b'{' { b'}' } else { b']' });
                cut = Some(index + 1);
            }
            b'}' | b']' => {
                if open.pop() != Some(*byte) {
                    return None;
                }
                cut = Some(index + 1);
            }
            // What stands before a comma is finished; the comma itself must go.
            b',' => cut = Some(index),
            _ => {}
        }
        if open.len() > limits::NESTING_MAX {
            return None;
        }
    }
    // Every bracket moves the cut, so the brackets open at the end are those open at the cut.
    let mut whole = text.get(..cut?)?.to_vec();
    whole.extend(open.iter().rev());
    match serde_json::from_slice(&whole) {
        Ok(Value::Object(object)) if !object.is_empty() => Some(object),
        _ => None,
    }
}
