//! Finds the byte range of a pointer in JSON text. Intended for text that parses; on other text it stops
//! early and returns the best position so far. It never panics and reads each byte at most twice per level of
//! the pointer.

use std::ops::Range;

use super::{EntryPart, Span, pointer};

/// The position of `pointer`; the nearest ancestor if it does not resolve. Of duplicate keys the last is
/// used, since its value is the effective one.
pub fn json_place(text: &str, pointer: &str, part: EntryPart) -> Span {
    let mut scan = Scan {
        bytes: text.as_bytes(),
        at: 0,
    };
    scan.space();
    let mut value = scan.at..scan.value_end(scan.at);
    let mut key: Option<Range<usize>> = None;
    for token in pointer::tokens(pointer) {
        match child(scan.bytes, text, value.clone(), &token) {
            Some((child_key, child_value)) => {
                key = child_key;
                value = child_value;
            }
            None => {
                return Span {
                    range: key.unwrap_or(value),
                    exact: false,
                };
            }
        }
    }
    let range = match (part, key) {
        (EntryPart::Key, Some(key)) => key,
        _ => value,
    };
    Span { range, exact: true }
}

type ObjectMember = (Option<Range<usize>>, Range<usize>);

/// The member or item named by `token` in the value at `range`.
fn child(bytes: &[u8], text: &str, range: Range<usize>, token: &str) -> Option<ObjectMember> {
    let mut scan = Scan {
        bytes,
        at: range.start,
    };
    let open = scan.next()?;
    let mut found = None;
    let mut index = 0usize;
    loop {
        scan.space();
        match scan.peek()? {
            b']' | b'}' => return found,
            b',' => {
                scan.at += 1;
                continue;
            }
            _ => {}
        }
        if scan.at >= range.end {
            return found;
        }
        let key = (open == b'{').then(|| {
            let start = scan.at;
            scan.at = scan.value_end(start);
            let key = start..scan.at;
            scan.space();
            scan.at += 1;
            scan.space();
            key
        });
        let value = scan.at..scan.value_end(scan.at);
        if value.is_empty() {
            return found;
        }
        let hit = match &key {
            Some(key) => {
                serde_json::from_str::<String>(text.get(key.clone())?).is_ok_and(|name| name == token)
            }
            None => token.parse() == Ok(index),
        };
        if hit {
            found = Some((key, value.clone()));
        }
        index += 1;
        scan.at = value.end;
    }
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// The end of the value that starts at `start`; brackets are counted without recursion.
    fn value_end(&self, start: usize) -> usize {
        let mut depth = 0usize;
        let mut at = start;
        while let Some(&byte) = self.bytes.get(at) {
            match byte {
                b'"' => at = self.string_end(at),
                b'{' | b'[' => {
                    depth += 1;
                    at += 1;
                    continue;
                }
                b'}' | b']' if depth == 0 => return at,
                b'}' | b']' => {
                    depth -= 1;
                    at += 1;
                }
                b',' | b':' if depth == 0 => return at,
                byte if byte.is_ascii_whitespace() && depth == 0 => return at,
                _ => {
                    at += 1;
                    if depth == 0 {
                        continue;
                    }
                }
            }
            if depth == 0 {
                return at;
            }
        }
        self.bytes.len()
    }

    fn string_end(&self, start: usize) -> usize {
        let mut at = start + 1;
        while let Some(&byte) = self.bytes.get(at) {
            match byte {
                b'\\' => at += 2,
                b'"' => return at + 1,
                _ => at += 1,
            }
        }
        self.bytes.len()
    }
}
