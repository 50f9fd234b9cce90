//! A module run as a vendor stream: the JSON of its data, sent as the run produces it. No vendor stream can
//! retract text, so sent text is never contradicted: a restarted answer continues after it, or the stream
//! ends with an error.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use engine::Subscription;
use engine::port::{EncodedEvent, EventKind};
use futures::stream;
use ir::event::Block;
use ir::fold::unfold;
use ir::{Dialect, Event};
use module::Code;
use module::envelope::{Envelope, ErrorBody};
use module::stream::{AppendOnlyText, Chunk, Retracted};
use serde_json::{Map, Value};

use super::error::VendorError;
use super::module_model::{envelope_of, error_of, extension};
use super::response_encoder::{ResponseEncoder, ResponseMeta};
use crate::framing::Framing;
use crate::limits;
use crate::state::Gateway;
use crate::stream_limit::StreamPermit;
use crate::streaming::{self, OpenStream};

/// A subscription and the encoder of its stream.
pub(super) struct Telling {
    subscription: Subscription,
    dialect: Dialect,
    text: AppendOnlyText,
    voice: ResponseEncoder,
    /// The text block was started.
    speaks: bool,
    /// Bytes were sent to the client, if only a heartbeat.
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

    /// A run that fails before its first byte determines the status; later failures are events of the stream.
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

    /// Waits for the next bytes, which are empty only at the end. If the run failed before anything was sent,
    /// returns its envelope as an error.
    async fn hear(&mut self) -> Result<Bytes, Box<Value>> {
        let mut words = Vec::new();
        while words.is_empty() && !self.ended {
            let run = self.subscription.run();
            let events = match self.subscription.next().await {
                Ok(Some(events)) => events,
                Ok(None) => {
                    self.conclude(
                        &envelope_of(Err(engine::Error::MissingTerminalEvent(run))),
                        &mut words,
                    )?;
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
            EventKind::Final | EventKind::Error | EventKind::Interrupted => {
                self.conclude(&envelope_of(Ok(event)), words)
            }
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

    /// Encodes the end of the run: the remaining text and the extension, or the error.
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
        self.voice.finish(words);
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
    /// Bytes received before the response was started.
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
    let body = body.suggest("retry, or request a complete response, for which a restart is possible");
    Envelope::failure(body).into_value()
}
