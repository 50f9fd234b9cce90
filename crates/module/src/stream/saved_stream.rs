//! A recorded stream: one chunk per line (NDJSON), or server-sent events. The framing is detected line by
//! line, so that mixed logs can be read. Any input returns an envelope.

use serde_json::Value;

use super::assemble::{Assembled, Assembler};
use super::chunk::Chunk;
use super::violation::Violation;
use crate::code::Code;

/// Folds a recorded stream.
pub fn assemble_ndjson(bytes: &[u8]) -> Assembled {
    let mut assembler = Assembler::new();
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    // The data lines of the current event, joined by line feeds, and the number of the first.
    let mut event: Option<(usize, Vec<u8>)> = None;
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let number = index + 1;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(data) = line.strip_prefix(b"data:") {
            let data = data.strip_prefix(b" ").unwrap_or(data);
            match &mut event {
                Some((_, text)) => {
                    text.push(b'\n');
                    text.extend_from_slice(data);
                }
                None => event = Some((number, data.to_vec())),
            }
            continue;
        }
        if is_framing(line) {
            continue;
        }
        if let Some((number, text)) = event.take() {
            push(&mut assembler, number, &text);
        }
        if !line.iter().all(u8::is_ascii_whitespace) {
            push(&mut assembler, number, line);
        }
    }
    if let Some((number, text)) = event {
        push(&mut assembler, number, &text);
    }
    assembler.finish()
}

/// Lines of server-sent events that carry no data: names, ids, comments and heartbeats.
fn is_framing(line: &[u8]) -> bool {
    [&b"event:"[..], b"id:", b"retry:", b":"]
        .iter()
        .any(|prefix| line.starts_with(prefix))
}

fn push(assembler: &mut Assembler, line: usize, text: &[u8]) {
    assembler.at_line(line);
    match serde_json::from_slice::<Value>(text) {
        Err(error) => {
            let message = format!("the line is not JSON: {error}");
            assembler.report(Violation::error(Code::E1000, "", message));
        }
        Ok(value) => match Chunk::from_value(value) {
            // The assembler records the violation.
            Ok(chunk) => drop(assembler.push(chunk)),
            Err(violations) => {
                for violation in violations {
                    assembler.report(violation);
                }
            }
        },
    }
}
