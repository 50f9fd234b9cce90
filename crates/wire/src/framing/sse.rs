//! Server-sent events. Supports CRLF, CR and LF, comments, several data lines, a byte order mark and
//! characters that are split between pushes. A line that begins with `{` is treated as a separate event:
//! proxies write bare error objects into streams, and no field name of the standard begins with a brace.

use memchr::{memchr, memchr2};

use crate::framing::{Frame, TooLarge};
use crate::limits::EVENT_BYTES_MAX;
use crate::steps::count_steps;

#[derive(Clone, Debug, Default)]
pub struct Sse {
    /// The current incomplete line.
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    name: String,
    /// The last byte was a CR; an LF directly after it belongs to it.
    after_cr: bool,
    past_first_line: bool,
}

impl Sse {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn push(&mut self, mut bytes: &[u8], sink: &mut dyn FnMut(Frame<'_>)) -> Result<(), TooLarge> {
        // Each byte is searched for once.
        count_steps(bytes.len());
        if std::mem::take(&mut self.after_cr)
            && let Some((b'\n', rest)) = bytes.split_first()
        {
            bytes = rest;
        }
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            let (head, tail) = bytes.split_at(end);
            if self.line.is_empty() {
                self.take_line(head, sink)?;
            } else {
                let mut line = std::mem::take(&mut self.line);
                self.room_for(line.len() + head.len())?;
                line.extend_from_slice(head);
                let taken = self.take_line(&line, sink);
                line.clear();
                self.line = line;
                taken?;
            }
            bytes = match tail {
                [b'\r', b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                [_, rest @ ..] => rest,
                [] => &[],
            };
        }
        count_steps(bytes.len());
        self.room_for(self.line.len() + bytes.len())?;
        self.line.extend_from_slice(bytes);
        if self.data.is_empty() {
            // Releases the buffer between events.
            self.data = Vec::new();
        }
        Ok(())
    }

    pub fn finish(&mut self, sink: &mut dyn FnMut(Frame<'_>)) {
        let line = std::mem::take(&mut self.line);
        // An incomplete line is within the limit, because `push` checked it.
        self.take_line(&line, sink).ok();
        self.dispatch(sink);
    }

    fn room_for(&self, more: usize) -> Result<(), TooLarge> {
        if self.data.len() + more > EVENT_BYTES_MAX {
            Err(TooLarge)
        } else {
            Ok(())
        }
    }

    fn take_line(&mut self, mut line: &[u8], sink: &mut dyn FnMut(Frame<'_>)) -> Result<(), TooLarge> {
        count_steps(line.len());
        if !std::mem::replace(&mut self.past_first_line, true) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(sink);
            return Ok(());
        }
        if line.first() == Some(&b'{') {
            self.dispatch(sink);
            self.room_for(line.len())?;
            self.data.extend_from_slice(line);
            self.has_data = true;
            self.dispatch(sink);
            return Ok(());
        }
        let (field, value) = match memchr(b':', line) {
            Some(at) => {
                let (field, rest) = line.split_at(at);
                let value = rest.get(1..).unwrap_or_default();
                (field, value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &[][..]),
        };
        match field {
            b"data" => {
                self.room_for(value.len() + 1)?;
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            // A comment has an empty field name; `id` and `retry` are ignored.
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self, sink: &mut dyn FnMut(Frame<'_>)) {
        if std::mem::take(&mut self.has_data) {
            count_steps(self.data.len());
            let data = String::from_utf8_lossy(&self.data);
            sink(Frame {
                name: &self.name,
                data: &data,
            });
        }
        self.data.clear();
        self.name.clear();
    }

    /// Writes one event.
    pub fn write(out: &mut Vec<u8>, name: &str, data: &str) {
        if !name.is_empty() {
            out.extend_from_slice(b"event: ");
            out.extend_from_slice(name.as_bytes());
            out.push(b'\n');
        }
        for line in data.split('\n') {
            out.extend_from_slice(b"data: ");
            out.extend_from_slice(line.as_bytes());
            out.push(b'\n');
        }
        out.push(b'\n');
    }
}
