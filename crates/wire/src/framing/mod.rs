//! Framing of byte streams: server-sent events, lines of JSON, a list. Push decoders: input may be split at
//! any byte, complete events are returned; there is no IO, and at most one event is buffered.

mod list;
mod ndjson;
mod sse;
#[cfg(test)]
mod tests;

use ir::Dialect;

pub use list::{List, SseOrList};
pub use ndjson::Ndjson;
pub use sse::Sse;

/// An event is larger than [`crate::limits::EVENT_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

/// One event. Invalid UTF-8 has been replaced, as the standard for server-sent events requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    pub name: &'a str,
    pub data: &'a str,
}

/// The framing that a dialect uses.
#[derive(Clone, Debug)]
pub enum Framing {
    Sse(Sse),
    Ndjson(Ndjson),
    SseOrList(SseOrList),
}

impl Framing {
    /// `None` for a dialect without streams.
    pub fn of(dialect: Dialect) -> Option<Self> {
        match dialect {
            Dialect::OpenaiChat | Dialect::OpenaiResponses | Dialect::Anthropic => {
                Some(Self::Sse(Sse::new()))
            }
            Dialect::Gemini => Some(Self::SseOrList(SseOrList::default())),
            Dialect::Ollama | Dialect::Canonical => Some(Self::Ndjson(Ndjson::new())),
            _ => None,
        }
    }

    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Frame<'_>)) -> Result<(), TooLarge> {
        match self {
            Self::Sse(sse) => sse.push(bytes, sink),
            Self::Ndjson(ndjson) => ndjson.push(bytes, sink),
            Self::SseOrList(either) => either.push(bytes, sink),
        }
    }

    /// Ends the input: returns the remaining event if the stream ended without a final line break.
    pub fn finish(&mut self, sink: &mut dyn FnMut(Frame<'_>)) {
        match self {
            Self::Sse(sse) => sse.finish(sink),
            Self::Ndjson(ndjson) => ndjson.finish(sink),
            Self::SseOrList(either) => either.finish(sink),
        }
    }
}
