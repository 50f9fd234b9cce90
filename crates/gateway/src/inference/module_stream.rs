//! A module run as a vendor stream: the JSON of its data, sent as the run produces it. No vendor stream can
//! retract text, so sent text is never contradicted: a restarted answer continues after it, or the stream
//! ends with an error.

use axum::body::Bytes;
use axum::response::Response;
use engine::Subscription;
use engine::port::{EncodedEvent, EventKind};
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
use crate::streaming::{self, FrameSource, OpenStream, Preceded};

/// A subscription and the encoder of its stream.
pub(super) struct ModuleText {
    subscription: Subscription,
    dialect: Dialect,
    text: AppendOnlyText,
    encoder: ResponseEncoder,
    /// The text block was started.
    block_started: bool,
    /// Bytes were sent to the client, if only a heartbeat.
    sent: bool,
    ended: bool,
}

impl ModuleText {
    pub(super) fn new(subscription: Subscription, meta: ResponseMeta) -> Self {
        Self {
            subscription,
            dialect: meta.dialect,
            text: AppendOnlyText::new(),
            encoder: ResponseEncoder::new(meta),
            block_started: false,
            sent: false,
            ended: false,
        }
    }

    /// A run that fails before its first byte determines the status; later failures are events of the stream.
    pub(super) async fn response(
        mut self,
        gateway: &Gateway,
        permit: Option<StreamPermit>,
    ) -> Result<Response, VendorError> {
        let open = OpenStream::new(gateway, permit);
        let first = match tokio::time::timeout(limits::HEARTBEAT, self.next_bytes()).await {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(envelope)) => return Err(VendorError::of_envelope(*envelope)),
            Err(_) => Bytes::from_static(Framing::Sse.heartbeat()),
        };
        self.sent = true;
        let source = Preceded { first, rest: self };
        Ok(streaming::response(source, Framing::Sse, limits::HEARTBEAT, open))
    }

    /// Waits for the next bytes, which are empty only at the end. If the run failed before anything was sent,
    /// returns its envelope as an error.
    async fn next_bytes(&mut self) -> Result<Bytes, Box<Value>> {
        let mut bytes = Vec::new();
        while bytes.is_empty() && !self.ended {
            let run = self.subscription.run();
            let events = match self.subscription.next().await {
                Ok(Some(events)) => events,
                Ok(None) => {
                    self.conclude(
                        &envelope_of(Err(engine::Error::MissingTerminalEvent(run))),
                        &mut bytes,
                    )?;
                    break;
                }
                Err(error) => {
                    self.conclude(&envelope_of(Err(error)), &mut bytes)?;
                    break;
                }
            };
            for event in events {
                self.on_event(event, &mut bytes)?;
            }
        }
        Ok(Bytes::from(bytes))
    }

    fn on_event(&mut self, event: EncodedEvent, bytes: &mut Vec<u8>) -> Result<(), Box<Value>> {
        match event.kind {
            _ if self.ended => Ok(()),
            EventKind::Final | EventKind::Error | EventKind::Interrupted => {
                self.conclude(&envelope_of(Ok(event)), bytes)
            }
            EventKind::Chunk => {
                let chunk = serde_json::from_str(&event.body)
                    .ok()
                    .and_then(|chunk| Chunk::from_value(chunk).ok());
                let appended = chunk.map_or(Ok(String::new()), |chunk| self.text.push(&chunk));
                match appended {
                    Ok(text) => self.push_text(text, bytes),
                    Err(Retracted) => return self.conclude(&retracted(), bytes),
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Encodes the end of the run: the remaining text and the extension, or the error.
    fn conclude(&mut self, envelope: &Value, bytes: &mut Vec<u8>) -> Result<(), Box<Value>> {
        let data = envelope.get("data").and_then(Value::as_object);
        let rest = match data.filter(|_| envelope["ok"] == true) {
            Some(data) => self.rest(data),
            None => Err(envelope.clone()),
        };
        self.ended = true;
        match rest {
            Ok(rest) => {
                self.push_text(rest, bytes);
                self.encoder.encode(Event::BlockEnd { index: 0 }, bytes);
                for event in unfold(&extension(envelope, self.dialect)) {
                    self.encoder.encode(event, bytes);
                }
            }
            Err(envelope) if !self.sent => return Err(Box::new(envelope)),
            Err(envelope) => {
                let error = error_of(&envelope);
                self.encoder.encode(Event::Error { error }, bytes);
            }
        }
        self.encoder.finish(bytes);
        Ok(())
    }

    fn rest(&mut self, data: &Map<String, Value>) -> Result<String, Value> {
        self.text.finish(data).map_err(|Retracted| retracted())
    }

    fn push_text(&mut self, text: String, bytes: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        if !std::mem::replace(&mut self.block_started, true) {
            let block = Block::Text;
            self.encoder.encode(Event::BlockStart { index: 0, block }, bytes);
        }
        self.encoder.encode(Event::text(0, text), bytes);
    }
}

impl FrameSource for ModuleText {
    async fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        let bytes = self.next_bytes().await.unwrap_or_default();
        (!bytes.is_empty()).then_some(bytes)
    }
}

fn retracted() -> Value {
    let body = ErrorBody::new(Code::E2010, Retracted.to_string());
    let body = body.suggest("retry, or request a complete response, for which a restart is possible");
    Envelope::failure(body).into_value()
}
