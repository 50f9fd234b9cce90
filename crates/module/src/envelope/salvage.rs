//! The complete parts of a truncated JSON text: every finished member and item inside the brackets that were
//! open. Nothing is guessed: an unfinished string or number is omitted.

use serde_json::{Map, Value};

use crate::limits;
use crate::steps::count_steps;

/// The complete parts of the object at the start of `text`. `None` if nothing in it was finished.
pub(super) fn salvage(text: &[u8]) -> Option<Map<String, Value>> {
    // Scanned, copied and parsed.
    count_steps(3 * text.len());
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
            // The text before a comma is complete; the comma itself is removed.
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
