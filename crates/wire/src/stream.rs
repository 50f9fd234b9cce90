//! A dialect's stream in both directions. [`Decoder`] takes bytes split at any position and returns events;
//! [`Encoder`] takes events and returns bytes. A stream that ends before its dialect's end marker is an
//! error, and nothing follows an error.

use std::fmt;

use ir::{Delta, Dialect, Error, ErrorKind, Event, Ledger, Phase};
use serde::de::IgnoredAny;

use crate::control_tokens::ControlTokenDetector;
use crate::framing::{Framing, Ndjson, Sse};

/// Decodes the frames of one dialect.
pub(crate) trait DecodeFrame: Send + Sync + fmt::Debug {
    fn frame(&mut self, data: &str, out: &mut Vec<Event>);

    /// The bytes have ended. The dialect decides whether the response is complete.
    fn end(&mut self, out: &mut Vec<Event>);
}

/// Encodes events as frames of one dialect.
pub(crate) trait EncodeEvent: Send + Sync + fmt::Debug {
    fn event(&mut self, event: &Event, out: &mut Vec<u8>, ledger: &mut Ledger);

    /// No more events follow.
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
    /// A decoder, if the dialect has streams.
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
                Error::invalid_response(Phase::MidStream, "the stream contains an event that is too large");
            out.push(Event::Error { error });
        }
        self.watch(from, out);
    }

    /// Ends the input: returns the remaining events, or an error if the response is incomplete.
    pub fn finish(&mut self, out: &mut Vec<Event>) {
        if self.ended {
            return;
        }
        let from = out.len();
        let read = &mut self.read;
        self.framing.finish(&mut |frame| {
            // A partial event is not reported separately from the truncated stream.
            let whole = frame.data == "[DONE]" || serde_json::from_str::<IgnoredAny>(frame.data).is_ok();
            if whole {
                read.frame(frame.data, out);
            }
        });
        self.read.end(out);
        self.watch(from, out);
        self.ended = true;
    }

    /// Checks the new events: drops what follows an error and warns about control tokens in the text.
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

/// The error for a stream that ended early.
pub(crate) fn truncated() -> Event {
    let error = Error::new(
        ErrorKind::Network,
        Phase::MidStream,
        "the stream ended before the answer was complete",
    );
    Event::Error { error }
}

/// The error for a frame that is not valid JSON of the dialect.
pub(crate) fn undecodable(dialect: Dialect, why: &serde_json::Error) -> Event {
    let message = format!("the stream contains an event that is not valid {dialect}: {why}");
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
    /// An encoder, if the dialect has streams.
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

    /// Gemini's other stream format: one JSON list, its default unless server-sent events are requested.
    pub fn gemini_list() -> Self {
        Self {
            write: Box::new(crate::gemini::StreamEncoder::list()),
            ended: false,
        }
    }

    /// Encodes an event. After an error nothing more is written, in particular no end marker.
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

/// Writes one server-sent event with a JSON body.
pub(crate) fn write_sse(out: &mut Vec<u8>, name: &str, data: &serde_json::Value) {
    Sse::write(out, name, &data.to_string());
}

pub(crate) fn write_line(out: &mut Vec<u8>, data: &serde_json::Value) {
    Ndjson::write(out, &data.to_string());
}
