//! A module's answer as a vendor's stream: its data's JSON, told as the run produces it. No vendor's stream can
//! take a word back, so what was told is never contradicted: an answer that is begun anew goes on behind it,
//! or the stream ends in an error.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use engine::Subscription;
use engine::port::{EventKind, EncodedEvent};
use futures::stream;
use ir::event::Block;
use ir::fold::unfold;
use ir::{Dialect, Event};
use module::Code;
use module::envelope::{Envelope, ErrorBody};
use module::stream::{Chunk, AppendOnlyText, Retracted};
use serde_json::{Map, Value};

use super::error::VendorError;
use super::module_model::{extension, envelope_of, error_of};
use super::response_encoder::{ResponseMeta, ResponseEncoder};
use crate::framing::Framing;
use crate::limits;
use crate::stream_limit::StreamPermit;
use crate::state::Gateway;
use crate::streaming::{self, OpenStream};

/// A run that is read, and how it is told.
pub(super) struct Telling {
    subscription: Subscription,
    dialect: Dialect,
    text: AppendOnlyText,
    voice: ResponseEncoder,
    /// The text of the answer has begun.
    speaks: bool,
    /// The caller has heard something, be it a sign of life.
    begun: bool,
    ended: bool,
}

impl Telling {
    pub(super) fn new(subscription: Subscription, manner: ResponseMeta) -> Self {
        Self {
            subscription,
            dialect: manner.dialect,
            text: AppendOnlyText::new(),
            voice: ResponseEncoder::new(manner),
            speaks: false,
            begun: false,
            ended: false,
        }
    }

    /// A run that fails before its first word still has a status; a stream that has begun can only say it
    /// failed.
    pub(super) async fn response(
        mut self,
        gateway: &Gateway,
        seat: Option<StreamPermit>,
    ) -> Result<Response, VendorError> {
        let first = match tokio::time::timeout(limits::HEARTBEAT, self.hear()).await {
            Ok(Ok(words)) => words,
            Ok(Err(envelope)) => return Err(VendorError::of_envelope(*envelope)),
            Err(_) => Bytes::from_static(Framing::Sse.heartbeat()),
        };
        self.begun = true;
        let reader = ModuleStreamBody {
            first: Some(first),
            telling: self,
            open: OpenStream::new(gateway, seat),
        };
        let body = Body::from_stream(stream::unfold(reader, next));
        Ok((streaming::head(Framing::Sse), body).into_response())
    }

    /// Waits for the next words, which are none only at the end. The envelope of a run that failed before
    /// anything was heard is not told, but given.
    async fn hear(&mut self) -> Result<Bytes, Box<Value>> {
        let mut words = Vec::new();
        while words.is_empty() && !self.ended {
            let run = self.subscription.run();
            let events = match self.subscription.next().await {
                Ok(Some(events)) => events,
                Ok(None) => {
                    self.conclude(&envelope_of(Err(engine::Error::MissingTerminalEvent(run))), &mut words)?;
                    break;
                }
                Err(error) => {
                    self.conclude(&envelope_of(Err(error)), &mut words)?;
                    break;
                }
            };
            for event in events {
                self.take(event, &mut words)?;
            }
        }
        Ok(Bytes::from(words))
    }

    fn take(&mut self, event: EncodedEvent, words: &mut Vec<u8>) -> Result<(), Box<Value>> {
        match event.kind {
            _ if self.ended => Ok(()),
            EventKind::Final | EventKind::Error => self.conclude(&envelope_of(Ok(event)), words),
            EventKind::Chunk => {
                let chunk = serde_json::from_str(&event.body)
                    .ok()
                    .and_then(|chunk| Chunk::from_value(chunk).ok());
                let grown = chunk.map_or(Ok(String::new()), |chunk| self.text.push(&chunk));
                match grown {
                    Ok(text) => self.tell(text, words),
                    Err(Retracted) => return self.conclude(&taken_back(), words),
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The run is over: the rest of its answer and what stands beside it, or why there is none.
    fn conclude(&mut self, envelope: &Value, words: &mut Vec<u8>) -> Result<(), Box<Value>> {
        let data = envelope.get("data").and_then(Value::as_object);
        let rest = match data.filter(|_| envelope["ok"] == true) {
            Some(data) => self.rest(data),
            None => Err(envelope.clone()),
        };
        self.ended = true;
        match rest {
            Ok(rest) => {
                self.tell(rest, words);
                self.voice.encode(Event::BlockEnd { index: 0 }, words);
                for event in unfold(&extension(envelope, self.dialect)) {
                    self.voice.encode(event, words);
                }
            }
            Err(envelope) if !self.begun => return Err(Box::new(envelope)),
            Err(envelope) => {
                let error = error_of(&envelope);
                self.voice.encode(Event::Error { error }, words);
            }
        }
        self.voice.before_finish(words);
        Ok(())
    }

    fn rest(&mut self, data: &Map<String, Value>) -> Result<String, Value> {
        self.text.finish(data).map_err(|Retracted| taken_back())
    }

    fn tell(&mut self, text: String, words: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        if !std::mem::replace(&mut self.speaks, true) {
            let block = Block::Text;
            self.voice.encode(Event::BlockStart { index: 0, block }, words);
        }
        self.voice.encode(Event::text(0, text), words);
    }
}

struct ModuleStreamBody {
    /// What was heard before there was a stream.
    first: Option<Bytes>,
    telling: Telling,
    open: OpenStream,
}

async fn next(mut reader: ModuleStreamBody) -> Option<(Result<Bytes, Infallible>, ModuleStreamBody)> {
    let words = match reader.first.take() {
        Some(words) => words,
        None if reader.telling.ended => return None,
        None => match tokio::time::timeout(limits::HEARTBEAT, reader.telling.hear()).await {
            Ok(words) => words.unwrap_or_default(),
            Err(_) => Bytes::from_static(Framing::Sse.heartbeat()),
        },
    };
    reader.open.count(words.len());
    Some((Ok(words), reader))
}

fn taken_back() -> Value {
    let body = ErrorBody::new(Code::E2010, Retracted.to_string());
    let body = body.suggest("ask again, or without a stream: a whole answer may be begun anew");
    Envelope::failure(body).into_value()
}
