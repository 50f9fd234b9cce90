//! Envelope responses. Every body is an envelope, and its code determines the status.

use std::sync::Arc;

use axum::Json;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use engine::port::{EncodedEvent, JournalError};
use engine::run::envelope;
use ir::RunId;
use module::code;
use module::envelope::{Envelope, EnvelopeBody, ErrorBody, Meta, Risk};
use serde_json::{Map, Value};

use crate::headers::SESSION_HEADER;

/// An error of a request. Handlers return it with `?`.
#[derive(Debug)]
pub(crate) struct ApiError {
    body: Box<ErrorBody>,
    status: Option<StatusCode>,
}

impl ApiError {
    pub(crate) fn new(body: ErrorBody) -> Self {
        Self {
            body: Box::new(body),
            status: None,
        }
    }

    /// With another status than that of the code.
    pub(crate) fn with_status(body: ErrorBody, status: StatusCode) -> Self {
        Self {
            body: Box::new(body),
            status: Some(status),
        }
    }
}

impl ApiError {
    pub(crate) fn into_body(self) -> ErrorBody {
        *self.body
    }

    pub(crate) fn into_parts(self) -> (StatusCode, ErrorBody) {
        (self.status(), *self.body)
    }

    fn status(&self) -> StatusCode {
        self.status.unwrap_or_else(|| status_of(&self.body.code))
    }
}

/// The error of a response, for layers that encode it in another format than an envelope.
#[derive(Clone, Debug)]
pub(crate) struct ErrorExtension(pub(crate) Arc<ErrorBody>);

impl From<Box<ErrorBody>> for ApiError {
    fn from(body: Box<ErrorBody>) -> Self {
        Self { body, status: None }
    }
}

impl From<engine::Error> for ApiError {
    fn from(error: engine::Error) -> Self {
        let status = match &error {
            engine::Error::DuplicateRequest(_) | engine::Error::NotInReview(_) => Some(StatusCode::CONFLICT),
            engine::Error::Journal(JournalError::Full) => Some(StatusCode::SERVICE_UNAVAILABLE),
            _ => None,
        };
        Self {
            body: Box::new(error.into_body()),
            status,
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, body) = self.into_parts();
        let refused = ErrorExtension(Arc::new(body.clone()));
        let mut response = envelope_response(status, Envelope::failure(body).into_value());
        response.extensions_mut().insert(refused);
        if status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

/// The envelope of an ended run, from its terminal event.
pub(crate) fn run(run: RunId, last: &EncodedEvent) -> Response {
    let envelope = envelope(last);
    let code = envelope.pointer("/error/code").and_then(Value::as_str);
    let status = code.map_or(StatusCode::OK, status_of);
    let mut response = envelope_response(status, envelope);
    if let Ok(value) = HeaderValue::from_str(&run.to_string()) {
        response.headers_mut().insert(SESSION_HEADER, value);
    }
    response
}

/// An envelope as a response, with `Retry-After` for clients that do not parse envelopes.
fn envelope_response(status: StatusCode, envelope: Value) -> Response {
    let pause_ms = envelope
        .pointer("/error/details/retry_after_ms")
        .and_then(Value::as_u64);
    let mut response = (status, Json(envelope)).into_response();
    if let Some(pause_ms) = pause_ms {
        let seconds = HeaderValue::from(pause_ms.div_ceil(1_000));
        response.headers_mut().insert(RETRY_AFTER, seconds);
    }
    response
}

/// A resource of the server itself, with confidence 1.
pub(crate) fn resource(explain: &str, data: Value) -> Response {
    Json(record(explain, data)).into_response()
}

/// The envelope of such a resource.
pub(crate) fn record(explain: &str, data: Value) -> Value {
    let mut map = match data {
        Value::Object(map) => map,
        other => Map::from_iter([(String::from("value"), other)]),
    };
    map.entry("rationale")
        .or_insert_with(|| Value::from("This is the server's own record."));
    let envelope = Envelope {
        meta: Meta::new(1.0, Risk::None, explain),
        body: EnvelopeBody::Success { data: map },
        annotations: Map::new(),
    };
    envelope.into_value()
}

fn status_of(code: &str) -> StatusCode {
    StatusCode::from_u16(code::http_status(code)).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
