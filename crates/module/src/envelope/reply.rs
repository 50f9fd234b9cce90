//! Extracts the JSON objects from the bytes of a model's reply. The common case, one object and no other
//! text, costs a single parse. Everything else (fences, prose, several objects, a BOM, truncated text) is one
//! scan: the JSON parser is tried at each opening bracket, so braces and backticks inside strings are handled
//! correctly. The total work of the scan is bounded by a multiple of the text's length.

use std::ops::ControlFlow;

use memchr::{memchr_iter, memchr2};
use serde_json::{Deserializer, Map, Value};

use super::salvage::salvage;
use crate::limits;
use crate::steps::count_steps;

/// The objects of a reply, in order; never empty.
#[derive(Debug)]
pub(super) struct Objects {
    pub(super) list: Vec<Map<String, Value>>,
    /// The reply was one object and no other text.
    pub(super) is_only_text: bool,
}

/// Why a reply yields no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Empty,
    TooLarge,
    InvalidUtf8,
    /// The text contains no beginning of an object.
    NoJson,
    /// An object begins, but its JSON is invalid.
    Malformed,
    /// The text ends inside an object.
    Truncated,
    /// Brackets are nested deeper than the limit.
    Nesting,
    /// Valid JSON, but an array or a scalar.
    NotAnObject(&'static str),
}

#[derive(Debug)]
pub(super) struct Unreadable {
    pub(super) reason: Reason,
    /// Byte position in the reply where reading failed.
    pub(super) offset: Option<usize>,
    /// The complete parts of a truncated text.
    pub(super) salvaged: Option<Map<String, Value>>,
}

impl Unreadable {
    fn new(reason: Reason, offset: Option<usize>) -> Self {
        Self {
            reason,
            offset,
            salvaged: None,
        }
    }
}

pub(super) fn read(reply: &[u8]) -> Result<Objects, Unreadable> {
    if reply.len() > limits::REPLY_BYTES_MAX {
        return Err(Unreadable::new(Reason::TooLarge, Some(limits::REPLY_BYTES_MAX)));
    }
    let body = reply.trim_ascii_start();
    let body = body
        .strip_prefix(b"\xEF\xBB\xBF")
        .unwrap_or(body)
        .trim_ascii_start();
    // Offsets are relative to the reply before trimming.
    let skipped = reply.len() - body.len();
    let body = body.trim_ascii_end();
    if body.is_empty() {
        return Err(Unreadable::new(Reason::Empty, None));
    }
    let mut scan = Scan::new(body);
    if body.first() == Some(&b'{')
        && let Ok((Value::Object(object), end)) = parse(body)
    {
        if end == body.len() {
            return Ok(Objects {
                list: vec![object],
                is_only_text: true,
            });
        }
        scan.keep(object);
        scan.at = end;
    }
    read_scattered(body, scan).map_err(|mut unreadable| {
        unreadable.offset = unreadable.offset.map(|offset| offset + skipped);
        unreadable
    })
}

fn read_scattered<'a>(body: &'a [u8], mut scan: Scan<'a>) -> Result<Objects, Unreadable> {
    if let Err(error) = std::str::from_utf8(body) {
        // A text that ends within a character was truncated; any other invalid sequence means binary data.
        if error.error_len().is_some() {
            return Err(Unreadable::new(Reason::InvalidUtf8, Some(error.valid_up_to())));
        }
        scan.bytes = body.get(..error.valid_up_to()).unwrap_or_default();
    }
    if body.first() != Some(&b'{')
        && let Ok(other) = serde_json::from_slice::<Value>(body)
    {
        let reason = Reason::NotAnObject(super::structure::kind(&other));
        return Err(Unreadable::new(reason, None));
    }
    while let ControlFlow::Continue(()) = scan.step() {}
    scan.finish()
}

/// One scan of a text for objects.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Bytes that may still be scanned; the limit protects against hostile replies.
    budget: usize,
    envelopes: Vec<Map<String, Value>>,
    others: Vec<Map<String, Value>>,
    /// False after a broken object without an end: the text after it may be its inner parts.
    trust_bare: bool,
    array_of_objects: bool,
    failure: Option<Unreadable>,
}

impl<'a> Scan<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            budget: bytes.len().saturating_mul(limits::REPLY_SCAN_FACTOR) + limits::REPLY_SCAN_BASE,
            envelopes: Vec::new(),
            others: Vec::new(),
            trust_bare: true,
            array_of_objects: false,
            failure: None,
        }
    }

    fn keep(&mut self, object: Map<String, Value>) {
        let is_envelope = looks_like_envelope(&object);
        let list = if is_envelope {
            &mut self.envelopes
        } else {
            &mut self.others
        };
        if !is_envelope && !self.trust_bare {
            return;
        }
        if list.len() >= limits::REPLY_OBJECTS_MAX {
            list.remove(0);
        }
        list.push(object);
    }

    fn spend(&mut self, bytes: usize) -> ControlFlow<()> {
        match self.budget.checked_sub(bytes) {
            Some(rest) => {
                self.budget = rest;
                ControlFlow::Continue(())
            }
            None => {
                self.fail(Reason::Malformed, self.at);
                ControlFlow::Break(())
            }
        }
    }

    /// Only the first failure is reported.
    fn fail(&mut self, reason: Reason, offset: usize) {
        self.failure
            .get_or_insert_with(|| Unreadable::new(reason, Some(offset)));
    }

    fn step(&mut self) -> ControlFlow<()> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(offset) = memchr2(b'{', b'[', rest) else {
            return ControlFlow::Break(());
        };
        count_steps(offset + 1);
        let start = self.at + offset;
        let text = rest.get(offset..).unwrap_or_default();
        let is_object = text.first() == Some(&b'{');
        if is_object && !opens_object(text) {
            self.at = start + 1;
            return ControlFlow::Continue(());
        }
        match parse(text) {
            Ok((value, length)) => {
                self.at = start + length;
                match value {
                    Value::Object(object) => self.keep(object),
                    Value::Array(items) => self.array_of_objects |= items.iter().any(Value::is_object),
                    _ => {}
                }
                ControlFlow::Continue(())
            }
            Err(error) if error.is_eof() => self.stop_truncated(text, start),
            Err(error) => {
                let reached = position(text, &error);
                self.spend(reached + 1)?;
                if is_object {
                    self.skip_broken(text, start, reached)
                } else {
                    self.at = start + 1;
                    ControlFlow::Continue(())
                }
            }
        }
    }

    fn stop_truncated(&mut self, text: &[u8], start: usize) -> ControlFlow<()> {
        let nested = depth(text) > limits::NESTING_MAX;
        let reason = if nested {
            Reason::Nesting
        } else {
            Reason::Truncated
        };
        self.fail(reason, start + text.len());
        if let Some(failure) = &mut self.failure
            && !nested
        {
            failure.salvaged = salvage(text);
        }
        ControlFlow::Break(())
    }

    /// Skips an object that is invalid JSON, without treating its inner parts as answers.
    fn skip_broken(&mut self, text: &[u8], start: usize, reached: usize) -> ControlFlow<()> {
        let left = text.get(reached..).unwrap_or_default();
        let only_fence = left
            .iter()
            .all(|byte| byte.is_ascii_whitespace() || matches!(byte, b'`' | b'~'));
        if only_fence && !left.is_empty() {
            // The object was truncated inside a fence that was closed nevertheless.
            return self.stop_truncated(text.get(..reached).unwrap_or_default(), start);
        }
        let region = balanced(text);
        self.spend(region.end.unwrap_or(text.len()))?;
        let reason = if region.depth > limits::NESTING_MAX {
            Reason::Nesting
        } else {
            Reason::Malformed
        };
        self.fail(reason, start + reached);
        match region.end {
            Some(end) => self.at = start + end,
            None => {
                self.trust_bare = false;
                self.at = start + reached.max(1);
            }
        }
        ControlFlow::Continue(())
    }

    /// Envelopes take precedence over other objects; otherwise the order of the text is kept.
    fn finish(self) -> Result<Objects, Unreadable> {
        let list = if self.envelopes.is_empty() {
            self.others
        } else {
            self.envelopes
        };
        if !list.is_empty() {
            return Ok(Objects {
                list,
                is_only_text: false,
            });
        }
        Err(self.failure.unwrap_or_else(|| {
            let reason = if self.array_of_objects {
                Reason::NotAnObject("an array")
            } else {
                Reason::NoJson
            };
            Unreadable::new(reason, None)
        }))
    }
}

/// One JSON value at the start of `text`, and where it ends.
fn parse(text: &[u8]) -> Result<(Value, usize), serde_json::Error> {
    let mut stream = Deserializer::from_slice(text).into_iter::<Value>();
    match stream.next() {
        Some(Ok(value)) => {
            count_steps(stream.byte_offset());
            Ok((value, stream.byte_offset()))
        }
        Some(Err(error)) => {
            count_steps(position(text, &error));
            Err(error)
        }
        None => Ok((Value::Null, text.len())),
    }
}

/// Whether a brace was meant to open an object: it is followed by a quote of any kind, its end, a comment, or
/// a bare key and a colon as in JavaScript. Other braces are prose, code or mathematics.
fn opens_object(text: &[u8]) -> bool {
    let inside = text.get(1..).unwrap_or_default().trim_ascii_start();
    let begins = [&b"//"[..], b"/*", "“".as_bytes(), "‘".as_bytes()];
    if begins.iter().any(|begin| inside.starts_with(begin)) {
        return true;
    }
    match inside.first() {
        Some(b'"' | b'\'' | b'}') => true,
        // The text ends with the brace, or it is code.
        None => true,
        Some(first) if first.is_ascii_alphabetic() || *first == b'_' => {
            let name = inside
                .iter()
                .take(limits::REPLY_KEY_BYTES_MAX)
                .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
                .count();
            let after = inside.get(name..).unwrap_or_default();
            let blanks = after
                .iter()
                .take(limits::REPLY_KEY_BYTES_MAX)
                .take_while(|byte| byte.is_ascii_whitespace())
                .count();
            after.get(blanks) == Some(&b':')
        }
        Some(_) => false,
    }
}

/// Whether an object has the keys of an envelope.
pub(super) fn looks_like_envelope(object: &Map<String, Value>) -> bool {
    object.get("ok").is_some_and(Value::is_boolean)
        && ["meta", "data", "error"]
            .iter()
            .any(|key| object.contains_key(*key))
}

/// The offset in `text` at which parsing failed.
fn position(text: &[u8], error: &serde_json::Error) -> usize {
    let line_start = match error.line() {
        0 | 1 => 0,
        line => memchr_iter(b'\n', text)
            .nth(line - 2)
            .map_or(text.len(), |newline| newline + 1),
    };
    (line_start + error.column().saturating_sub(1)).min(text.len())
}

struct Region {
    /// The end of the first bracket's region, if it is closed.
    end: Option<usize>,
    depth: usize,
}

/// Follows brackets from the start of `text`, ignoring strings.
fn balanced(text: &[u8]) -> Region {
    let (mut open, mut deepest) = (0usize, 0usize);
    let (mut in_string, mut escaped) = (false, false);
    for (index, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                open += 1;
                deepest = deepest.max(open);
            }
            b'}' | b']' => {
                open = open.saturating_sub(1);
                if open == 0 {
                    count_steps(index);
                    return Region {
                        end: Some(index + 1),
                        depth: deepest,
                    };
                }
            }
            _ => {}
        }
    }
    count_steps(text.len());
    Region {
        end: None,
        depth: deepest,
    }
}

fn depth(text: &[u8]) -> usize {
    balanced(text).depth
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::steps::assert_linear;

    /// Hostile replies: brackets that open and are never closed, broken objects, many objects, and escapes.
    #[test]
    fn replies_are_read_in_linear_time() {
        let replies: [fn(usize) -> String; 7] = [
            |size| "{\"a\":".repeat(size / 5 + 1),
            |size| "[".repeat(size),
            |size| "{\"a\" 1} ".repeat(size / 9 + 1),
            |size| "text {\"a\": 1} ".repeat(size / 14 + 1),
            |size| format!("{{\"a\": \"{}", "\\".repeat(size)),
            |size| format!("{{'a': '{}", "{a: ".repeat(size / 4)),
            |size| format!("{{\"a\": {}", "{\"b\": x, ".repeat(size / 9)),
        ];
        for reply in replies {
            assert_linear(256 * 1024, |size| drop(read(reply(size).as_bytes())));
        }
    }

    #[test]
    fn repeated_texts_are_read_in_linear_time() {
        let patterns = [
            "{",
            "[",
            "{\"a\":",
            "{\"a\":[",
            "{\"",
            "{\"a\" ",
            "{\"a\":\"",
            "{}",
            "{a:",
            "{\"a\":1,",
            "}{",
            "[[1],",
            "{ ",
            "{\"a\":[1,x]",
            "\"{",
            "{'",
            "`{\"a\":1}`x",
        ];
        for pattern in patterns {
            assert_linear(200_000, |size| {
                let text = pattern.repeat(size.div_ceil(pattern.len()));
                read(text.as_bytes()).ok();
            });
        }
    }
}
