//! A stream that is one JSON list: `[{..},` `{..}]`. Gemini uses it unless server-sent events are requested,
//! so [`SseOrList`] detects the format by the first byte and accepts either.

use crate::framing::{Frame, Sse, TooLarge};
use crate::limits::EVENT_BYTES_MAX;
use crate::steps::count_steps;

/// Splits the outermost list into its members.
#[derive(Clone, Debug, Default)]
pub struct List {
    member: Vec<u8>,
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl List {
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Frame<'_>)) -> Result<(), TooLarge> {
        count_steps(bytes.len());
        for &byte in bytes {
            if self.in_string {
                self.hold(byte)?;
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'[' | b'{' => {
                    self.depth += 1;
                    if self.depth == 1 {
                        continue;
                    }
                }
                b']' | b'}' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        self.give(sink);
                        continue;
                    }
                }
                b',' if self.depth == 1 => {
                    self.give(sink);
                    continue;
                }
                _ => {}
            }
            self.hold(byte)?;
        }
        Ok(())
    }

    pub fn finish(&mut self, sink: &mut dyn FnMut(Frame<'_>)) {
        self.give(sink);
    }

    fn hold(&mut self, byte: u8) -> Result<(), TooLarge> {
        if self.member.len() >= EVENT_BYTES_MAX {
            return Err(TooLarge);
        }
        self.member.push(byte);
        Ok(())
    }

    fn give(&mut self, sink: &mut dyn FnMut(Frame<'_>)) {
        let member = std::mem::take(&mut self.member);
        count_steps(member.len());
        let text = String::from_utf8_lossy(member.trim_ascii());
        if !text.is_empty() {
            sink(Frame {
                name: "",
                data: &text,
            });
        }
    }
}

/// Server-sent events or a list, detected by the first byte.
#[derive(Clone, Debug, Default)]
pub enum SseOrList {
    #[default]
    Undecided,
    Sse(Sse),
    List(List),
}

impl SseOrList {
    pub fn push(&mut self, mut bytes: &[u8], sink: &mut dyn FnMut(Frame<'_>)) -> Result<(), TooLarge> {
        if matches!(self, Self::Undecided) {
            count_steps(bytes.len());
            bytes = bytes.trim_ascii_start();
            match bytes.first() {
                None => return Ok(()),
                Some(b'[') => *self = Self::List(List::default()),
                Some(_) => *self = Self::Sse(Sse::new()),
            }
        }
        match self {
            Self::Undecided => Ok(()),
            Self::Sse(sse) => sse.push(bytes, sink),
            Self::List(list) => list.push(bytes, sink),
        }
    }

    pub fn finish(&mut self, sink: &mut dyn FnMut(Frame<'_>)) {
        match self {
            Self::Undecided => {}
            Self::Sse(sse) => sse.finish(sink),
            Self::List(list) => list.finish(sink),
        }
    }
}
