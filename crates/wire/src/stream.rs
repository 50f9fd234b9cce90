//! A dialect's stream in both directions. [`Decoder`] takes bytes in at any border and gives events;
//! [`Encoder`] takes events and gives bytes. A stream that ends before its dialect says so is an error,
//! and nothing follows an error.

use std::fmt;

use ir::{Delta, Dialect, Error, ErrorKind, Event, Ledger, Phase};
use serde::de::IgnoredAny;

use crate::framing::{Framing, Ndjson, Sse};
use crate::control_tokens::ControlTokenDetector;

/// One dialect's reading of frames.
pub(crate) trait DecodeFrame: Send + Sync + fmt::Debug {
    fn frame(&mut self, data: &str, out: &mut Vec<Event>);

    /// The bytes have ended. Whether that is the end of the answer only the dialect knows.
    fn end(&mut self, out: &mut Vec<Event>);
}

/// One dialect's writing of frames.
pub(crate) trait EncodeEvent: Send + Sync + fmt::Debug {
    fn event(&mut self, event: &Event, out: &mut Vec<u8>, ledger: &mut Ledger);

    /// No more events come.
    fn end(&mut self, out: &mut Vec<u8>);
}

#[derive(Debug)]
pub struct Decoder {
    framing: Framing,
    read: Box<dyn DecodeFrame>,
    markers: ControlTokenDetector,
    ended: bool,
}

impl Decoder {
    /// A decoder for a dialect that streams.
    pub fn new(dialect: Dialect) -> Option<Self> {
        let framing = Framing::of(dialect)?;
        let read: Box<dyn DecodeFrame> = match dialect {
            Dialect::OpenaiChat => Box::new(crate::openai_chat::StreamDecoder::default()),
            Dialect::OpenaiResponses => Box::new(crate::openai_responses::StreamDecoder::default()),
            Dialect::Anthropic => Box::new(crate::anthropic::StreamDecoder::default()),
            Dialect::Gemini => Box::new(crate::gemini::StreamDecoder::default()),
            Dialect::Ollama => Box::new(crate::ollama::StreamDecoder::default()),
            Dialect::Canonical => Box::new(crate::canonical::StreamDecoder::default()),
            _ => return None,
        };
        Some(Self {
            framing,
            read,
            markers: ControlTokenDetector::default(),
            ended: false,
        })
    }

    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Event>) {
        if self.ended {
            return;
        }
        let from = out.len();
        let read = &mut self.read;
        let pushed = self.framing.push(bytes, &mut |frame| read.frame(frame.data, out));
        if pushed.is_err() {
            let error =
                Error::invalid_response(Phase::MidStream, "the stream holds an event that is too large");
            out.push(Event::Error { error });
        }
        self.watch(from, out);
    }

    /// The bytes have ended: gives what is still owed, an error if the answer is not whole.
    pub fn finish(&mut self, out: &mut Vec<Event>) {
        if self.ended {
            return;
        }
        let from = out.len();
        let read = &mut self.read;
        self.framing.finish(&mut |frame| {
            // Half an event is not worth an error of its own: that the stream was cut says it all.
            let whole = frame.data == "[DONE]" || serde_json::from_str::<IgnoredAny>(frame.data).is_ok();
            if whole {
                read.frame(frame.data, out);
            }
        });
        self.read.end(out);
        self.watch(from, out);
        self.ended = true;
    }

    /// Looks over the new events: nothing follows an error, and leaked markers are named.
    fn watch(&mut self, from: usize, out: &mut Vec<Event>) {
        let new = out.get(from..).unwrap_or_default();
        if let Some(at) = new.iter().position(|event| matches!(event, Event::Error { .. })) {
            out.truncate(from + at + 1);
            self.ended = true;
        }
        let mut at = from;
        while let Some(event) = out.get(at) {
            at += 1;
            let found = match event {
                Event::BlockStart { .. } => {
                    self.markers.begin();
                    None
                }
                Event::BlockDelta {
                    delta: Delta::Text { text },
                    ..
                } => self.markers.look(text),
                _ => None,
            };
            if let Some(warning) = found {
                out.insert(at, Event::Warning { warning });
            }
        }
    }
}

/// The error for a stream that stopped in the middle.
pub(crate) fn truncated() -> Event {
    let error = Error::new(
        ErrorKind::Network,
        Phase::MidStream,
        "the stream ended before the answer did",
    );
    Event::Error { error }
}

/// The error for a frame that is not JSON of the dialect.
pub(crate) fn undecodable(dialect: Dialect, why: &serde_json::Error) -> Event {
    let message = format!("the stream holds an event that is not {dialect}: {why}");
    Event::Error {
        error: Error::invalid_response(Phase::MidStream, message),
    }
}

#[derive(Debug)]
pub struct Encoder {
    write: Box<dyn EncodeEvent>,
    ended: bool,
}

impl Encoder {
    /// An encoder for a dialect that streams.
    pub fn new(dialect: Dialect) -> Option<Self> {
        let write: Box<dyn EncodeEvent> = match dialect {
            Dialect::OpenaiChat => Box::new(crate::openai_chat::StreamEncoder::default()),
            Dialect::OpenaiResponses => Box::new(crate::openai_responses::StreamEncoder::default()),
            Dialect::Anthropic => Box::new(crate::anthropic::StreamEncoder::default()),
            Dialect::Gemini => Box::new(crate::gemini::StreamEncoder::default()),
            Dialect::Ollama => Box::new(crate::ollama::StreamEncoder::default()),
            Dialect::Canonical => Box::new(crate::canonical::StreamEncoder),
            _ => return None,
        };
        Some(Self { write, ended: false })
    }

    /// Gemini's other form of a stream: one list, which is what it writes unless asked for events.
    pub fn gemini_list() -> Self {
        Self {
            write: Box::new(crate::gemini::StreamEncoder::list()),
            ended: false,
        }
    }

    /// Writes what an event means. After an error nothing more is written, no mark of a good end above all.
    pub fn push(&mut self, event: &Event, out: &mut Vec<u8>, ledger: &mut Ledger) {
        if !self.ended {
            self.write.event(event, out, ledger);
            self.ended = matches!(event, Event::Error { .. });
        }
    }

    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.ended, true) {
            self.write.end(out);
        }
    }
}

/// Writes one line or event of JSON.
pub(crate) fn write_sse(out: &mut Vec<u8>, name: &str, data: &serde_json::Value) {
    Sse::write(out, name, &data.to_string());
}

pub(crate) fn write_line(out: &mut Vec<u8>, data: &serde_json::Value) {
    Ndjson::write(out, &data.to_string());
}
