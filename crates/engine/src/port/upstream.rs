//! The upstream port: a back-end that answers canonical requests.

use std::fmt;
use std::future::ready;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use ir::adaptation::Adaptation;
use ir::envelope::ResponsePayload;
use ir::{Dialect, Error, ErrorKind, Event, FieldRanges, Phase, Request, Usage};
use serde_json::Value;

/// The events of one attempt. All errors, including connection errors, arrive as [`Event::Error`]; a stream
/// that ends without [`Event::Finish`] was truncated. Dropping the stream cancels the call.
pub type EventStream = BoxStream<'static, Event>;

/// The same, with the raw bytes of the back-end where they can be forwarded.
pub type RawStream = BoxStream<'static, RawItem>;

/// Identity of a back-end, for plans, logs and `meta.model`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    pub name: String,
    pub kind: String,
    pub model: Option<String>,
}

impl Backend {
    /// `provider/model`, as in `meta.model`.
    pub fn label(&self) -> String {
        let model = self.model.as_deref().unwrap_or(&self.name);
        format!("{}/{model}", self.kind)
    }
}

/// A caller's unmodified request, for a back-end with the same dialect.
#[derive(Clone, Debug)]
pub struct RawRequest {
    pub dialect: Dialect,
    /// The body as received: one JSON object.
    pub body: Bytes,
    /// The fields of the body, so that no attempt has to find them again.
    pub fields: FieldRanges,
    /// Headers of the caller that belong to its dialect. Only known names are copied, so there are no
    /// secrets.
    pub headers: Vec<(&'static str, String)>,
}

impl RawRequest {
    /// `None` if the body is not one object, or has a duplicate field.
    pub fn new(dialect: Dialect, body: Bytes, headers: Vec<(&'static str, String)>) -> Option<Self> {
        Some(Self {
            dialect,
            fields: FieldRanges::of(&body)?,
            body,
            headers,
        })
    }

    /// The bytes of a field's value.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.body.get(self.fields.range(name)?)
    }
}

/// One item of a raw stream. A call is answered in chunks of bytes or in events, never in both.
#[derive(Clone, Debug, PartialEq)]
pub enum RawItem {
    Chunk(RawChunk),
    /// Errors have this form only, so that no sent bytes have to be revoked.
    Event(Event),
}

/// Bytes of an answer and their decoded events. Framed bytes are whole frames; bytes that the caller did not
/// request are omitted, their events are not.
#[derive(Clone, Debug, PartialEq)]
pub struct RawChunk {
    pub bytes: Bytes,
    pub events: Vec<Event>,
}

/// The response of a unary operation.
#[derive(Clone, Debug, PartialEq)]
pub struct UnaryResponse {
    pub payload: ResponsePayload,
    pub usage: Option<Usage>,
    /// What was requested and had to be adapted.
    pub adaptations: Vec<Adaptation>,
    /// The raw response, if it may be exposed.
    pub raw: Option<Value>,
}

/// No method has a default body: a decorator that does not delegate a method does not compile.
pub trait Upstream: Send + Sync + fmt::Debug {
    fn backend(&self) -> &Backend;

    /// Starts an attempt. Returns at once: connecting is part of the stream.
    fn stream(&self, request: Arc<Request>) -> EventStream;

    /// The same attempt with the raw bytes of the answer, if the back-end has the caller's dialect and
    /// passthrough is possible. `None`: the answer has to be encoded.
    fn stream_raw(&self, request: &Arc<Request>, verbatim: &Arc<RawRequest>) -> Option<RawStream>;

    /// Unary operations: embeddings, images, transcription, speech. Returns at once; dropping the future
    /// cancels the call.
    fn call(&self, request: Arc<Request>) -> BoxFuture<'static, Result<UnaryResponse, Error>>;

    /// Whether a request is sent as a body to which its patches can be applied.
    fn supports_patches(&self) -> bool;

    /// Token count of a request; `None` if the back-end cannot count without answering.
    fn count_request(&self, request: Arc<Request>) -> BoxFuture<'static, Option<u64>>;

    /// Token count of a text by the tokenizer of the back-end's model; `None` if it is not known without a
    /// call.
    fn count_tokens(&self, text: &str) -> Option<usize>;
}

/// A back-end without raw answers, unary operations, patches and token counts, such as a script or a test double.
/// Not for decorators: they delegate every method of [`Upstream`].
pub trait EventUpstream: Send + Sync + fmt::Debug {
    fn backend(&self) -> &Backend;

    /// As [`Upstream::stream`].
    fn stream(&self, request: Arc<Request>) -> EventStream;
}

impl<T: EventUpstream> Upstream for T {
    fn backend(&self) -> &Backend {
        EventUpstream::backend(self)
    }

    fn stream(&self, request: Arc<Request>) -> EventStream {
        EventUpstream::stream(self, request)
    }

    fn stream_raw(&self, _: &Arc<Request>, _: &Arc<RawRequest>) -> Option<RawStream> {
        None
    }

    fn call(&self, request: Arc<Request>) -> BoxFuture<'static, Result<UnaryResponse, Error>> {
        ready(Err(unsupported_operation(EventUpstream::backend(self), &request))).boxed()
    }

    fn supports_patches(&self) -> bool {
        false
    }

    fn count_request(&self, _: Arc<Request>) -> BoxFuture<'static, Option<u64>> {
        ready(None).boxed()
    }

    fn count_tokens(&self, _: &str) -> Option<usize> {
        None
    }
}

/// The error of a back-end that does not support the operation of a request.
pub fn unsupported_operation(backend: &Backend, request: &Request) -> Error {
    let operation = request.operation();
    let message = format!(
        "back-end {} does not support {}",
        backend.name,
        operation.as_str()
    );
    let mut error = Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message);
    error.operation = Some(operation);
    error
}
