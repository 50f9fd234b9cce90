//! Lines of JSON. Empty lines are ignored.

use memchr::memchr;

use crate::framing::{Frame, TooLarge};
use crate::limits::EVENT_BYTES_MAX;
use crate::steps::count_steps;

#[derive(Clone, Debug, Default)]
pub struct Ndjson {
    line: Vec<u8>,
    past_first_line: bool,
}

impl Ndjson {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn push(&mut self, mut bytes: &[u8], sink: &mut dyn FnMut(Frame<'_>)) -> Result<(), TooLarge> {
        while let Some(end) = memchr(b'\n', bytes) {
            let (head, tail) = bytes.split_at(end);
            count_steps(end + 1);
            if self.line.is_empty() {
                self.take_line(head, sink);
            } else {
                self.hold(head)?;
                let mut line = std::mem::take(&mut self.line);
                self.take_line(&line, sink);
                line.clear();
                self.line = line;
            }
            bytes = tail.get(1..).unwrap_or_default();
        }
        self.hold(bytes)
    }

    pub fn finish(&mut self, sink: &mut dyn FnMut(Frame<'_>)) {
        let line = std::mem::take(&mut self.line);
        self.take_line(&line, sink);
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        if self.line.len() + bytes.len() > EVENT_BYTES_MAX {
            return Err(TooLarge);
        }
        count_steps(2 * bytes.len());
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn take_line(&mut self, mut line: &[u8], sink: &mut dyn FnMut(Frame<'_>)) {
        count_steps(line.len());
        if !std::mem::replace(&mut self.past_first_line, true) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        let line = line.trim_ascii();
        if !line.is_empty() {
            let data = String::from_utf8_lossy(line);
            sink(Frame {
                name: "",
                data: &data,
            });
        }
    }

    /// Writes one line.
    pub fn write(out: &mut Vec<u8>, data: &str) {
        out.extend_from_slice(data.as_bytes());
        out.push(b'\n');
    }
}
