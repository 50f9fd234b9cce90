//! A back-end that answers canonical requests.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use ir::adaptation::Adaptation;
use ir::envelope::ResponsePayload;
use ir::{Dialect, Error, ErrorKind, Event, Phase, Request, Usage};
use serde_json::Value;

/// The events of one attempt. Whatever goes wrong, opening included, arrives as [`Event::Error`]; a
/// stream that ends without [`Event::Finish`] was cut. Dropping the stream cancels the call.
pub type EventStream = BoxStream<'static, Event>;

/// The same, with the back-end's own bytes where they can be passed on.
pub type RawStream = BoxStream<'static, RawItem>;

/// Who a back-end is, for plans, logs and `meta.model`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    pub name: String,
    pub kind: String,
    pub model: Option<String>,
}

impl Backend {
    /// `provider/model`, the way `meta.model` spells it.
    pub fn label(&self) -> String {
        let model = self.model.as_deref().unwrap_or(&self.name);
        format!("{}/{model}", self.kind)
    }
}

/// A caller's request in its own words, for a back-end that speaks the same language.
#[derive(Clone, Debug)]
pub struct RawRequest {
    pub dialect: Dialect,
    /// The body as it came: one JSON object.
    pub body: Bytes,
    /// Headers of the caller that belong to its dialect. Nobody's secrets: whoever fills this in takes only
    /// names that it knows.
    pub headers: Vec<(&'static str, String)>,
}

/// One thing that a back-end said. A call is answered in pieces or in events, never in both.
#[derive(Clone, Debug, PartialEq)]
pub enum RawItem {
    Chunk(RawChunk),
    /// Errors come in this form only, so that no bytes have to be taken back.
    Event(Event),
}

/// Bytes of an answer and what they mean. Framed bytes come in whole frames; bytes that the caller did not
/// ask for are left out, while what they mean is not.
#[derive(Clone, Debug, PartialEq)]
pub struct RawChunk {
    pub bytes: Bytes,
    pub events: Vec<Event>,
}

/// An answer that comes whole.
#[derive(Clone, Debug, PartialEq)]
pub struct UnaryResponse {
    pub payload: ResponsePayload,
    pub usage: Option<Usage>,
    /// What was asked and could not be had as it was asked.
    pub adaptations: Vec<Adaptation>,
    /// The back-end's own words, where somebody may see them.
    pub raw: Option<Value>,
}

pub trait Upstream: Send + Sync + fmt::Debug {
    fn backend(&self) -> &Backend;

    /// Starts an attempt. Returns at once: connecting is part of the stream.
    fn stream(&self, request: Arc<Request>) -> EventStream;

    /// The same for a caller who looks at words, warnings, usage and the end alone: what a vendor adds to them may be
    /// left out.
    fn stream_text(&self, request: Arc<Request>) -> EventStream {
        self.stream(request)
    }

    /// The same attempt with the answer's own bytes, if this back-end speaks the caller's dialect and the
    /// answer can be passed on as it is. `None`: it has to be translated.
    fn stream_raw(&self, _request: &Arc<Request>, _verbatim: &Arc<RawRequest>) -> Option<RawStream> {
        None
    }

    /// Operations whose answer comes whole: embeddings, images, transcription, speech. Returns at once;
    /// dropping the future cancels the call.
    fn call(&self, request: Arc<Request>) -> BoxFuture<'static, Result<UnaryResponse, Error>> {
        let backend = self.backend();
        let operation = request.operation();
        let message = format!("back-end {} cannot do {}", backend.name, operation.as_str());
        let mut error = Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message);
        error.operation = Some(operation);
        std::future::ready(Err(error)).boxed()
    }

    /// Whether a request is sent on as a body that its patches can change.
    fn supports_patches(&self) -> bool {
        false
    }

    /// How long a request is, where the back-end tells it without answering.
    fn count_request(&self, _request: Arc<Request>) -> BoxFuture<'static, Option<u64>> {
        std::future::ready(None).boxed()
    }

    /// Tokens of a text as the back-end's own model counts them; `None` where that is not known without
    /// asking.
    fn count_tokens(&self, _text: &str) -> Option<usize> {
        None
    }
}
