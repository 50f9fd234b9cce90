//! Errors of the vendor APIs. Handlers return a [`VendorError`] or an [`ApiError`]; one layer around the
//! handlers and the middleware before them encodes either in the vendor format, so that no path can omit it.

use std::sync::Arc;

use axum::Json;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use engine::RelayFailure;
use ir::{Error, ErrorKind};
use module::code;
use module::envelope::ErrorBody;
use serde_json::Value;
use wire::field_type::TypeMismatch;

use super::call_metadata::CallMetadata;
use super::vendor::Vendor;
use crate::response::{ApiError, ErrorExtension};

#[derive(Clone, Debug)]
pub(super) struct VendorError(Box<ErrorParts>);

#[derive(Clone, Debug)]
struct ErrorParts {
    status: u16,
    code: String,
    message: String,
    /// The invalid field of the request.
    field: Option<&'static str>,
    pause_ms: Option<u64>,
    receipt: Option<CallMetadata>,
    /// The envelope of a failed module run.
    envelope: Option<Arc<Value>>,
}

impl VendorError {
    pub(super) fn new(status: u16, code: &str, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorParts {
            status,
            code: String::from(code),
            message: message.into(),
            field: None,
            pause_ms: None,
            receipt: None,
            envelope: None,
        }))
    }

    /// An invalid request.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, "E1001", message)
    }

    /// A field of the wrong type.
    pub(super) fn invalid_field(misfit: TypeMismatch) -> Self {
        let mut failure = Self::new(400, "E1003", misfit.message);
        failure.0.field = Some(misfit.field);
        failure
    }

    /// With the metadata of the failed call.
    #[must_use]
    pub(super) fn with_metadata(mut self, receipt: CallMetadata) -> Self {
        self.0.receipt = Some(receipt);
        self
    }

    /// A call that no back-end completed.
    pub(super) fn from_relay(failure: RelayFailure) -> Self {
        let receipt = CallMetadata {
            run: failure.run,
            backend: None,
            attempts: Some(failure.attempts),
            cost_usd: None,
        };
        Self::from(failure.error).with_metadata(receipt)
    }

    /// A failed module run.
    pub(super) fn of_envelope(envelope: Value) -> Self {
        let text = |pointer: &str| envelope.pointer(pointer).and_then(Value::as_str);
        let code = text("/error/code").unwrap_or("E4000");
        let message = text("/error/message").unwrap_or("the module failed");
        let mut failure = Self::new(code::http_status(code), code, message);
        failure.0.pause_ms = envelope
            .pointer("/error/details/retry_after_ms")
            .and_then(Value::as_u64);
        failure.0.envelope = Some(Arc::new(envelope));
        failure
    }

    fn of_body(status: StatusCode, body: &ErrorBody) -> Self {
        let detail = |key: &str| body.details.as_ref().and_then(|details| details.get(key));
        // The one code that clients of both vendors check for; otherwise the code of this server.
        let code = match detail("reason").and_then(Value::as_str) {
            Some("model_not_found") => "model_not_found",
            _ => &body.code,
        };
        let mut failure = Self::new(status.as_u16(), code, body.message.clone());
        failure.0.pause_ms = detail("retry_after_ms").and_then(Value::as_u64);
        failure
    }

    fn render(&self, vendor: Vendor) -> Response {
        let facts = &self.0;
        let mut body = vendor.error(facts.status, &facts.code, &facts.message, facts.field);
        if let Some(envelope) = &facts.envelope {
            body["cogn"] = Value::clone(envelope);
        }
        if let (Vendor::Anthropic, Some(receipt)) = (vendor, &facts.receipt) {
            body["request_id"] = Value::from(receipt.run.to_string());
        }
        let status = StatusCode::from_u16(facts.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(body)).into_response();
        if let Some(pause_ms) = facts.pause_ms {
            let seconds = HeaderValue::from(pause_ms.div_ceil(1_000));
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        if let Some(receipt) = &facts.receipt {
            receipt.write_headers(response.headers_mut());
        }
        response
    }
}

/// An error of a back-end. Authentication errors concern the keys of this server, not of the caller; their
/// details are not exposed.
impl From<Error> for VendorError {
    fn from(error: Error) -> Self {
        let status = match (error.kind, error.status) {
            (ErrorKind::Auth, _) => 502,
            (ErrorKind::NotEnabled, Some(404)) => 404,
            _ => wire::error_body::status_of(&error),
        };
        let code = match error.kind {
            ErrorKind::ContextWindow => "context_length_exceeded",
            ErrorKind::ContentPolicy => "content_policy_violation",
            ErrorKind::NotEnabled if status == 404 => "model_not_found",
            ErrorKind::Auth => error.cognitive_code(),
            _ => error
                .provider_code
                .as_deref()
                .unwrap_or_else(|| error.cognitive_code()),
        };
        let message = match error.kind {
            ErrorKind::Auth => String::from("the back-end did not accept this server's credentials"),
            _ => error.message_with_reasons(),
        };
        let mut failure = Self::new(status, code, message);
        failure.0.pause_ms = error.retry_after_ms;
        failure
    }
}

impl From<ApiError> for VendorError {
    fn from(refusal: ApiError) -> Self {
        let (status, body) = refusal.into_parts();
        Self::of_body(status, &body)
    }
}

impl From<tenancy::Denial> for VendorError {
    fn from(denial: tenancy::Denial) -> Self {
        Self::from(ApiError::from(denial))
    }
}

/// Without the layer, only the status is sent.
impl IntoResponse for VendorError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Encodes errors on the paths of a vendor in its format.
pub(crate) fn translate(vendor: Vendor, mut response: Response) -> Response {
    let failure = response.extensions_mut().remove::<VendorError>();
    let failure = failure.or_else(|| {
        let status = response.status();
        let refused = response.extensions_mut().remove::<ErrorExtension>()?;
        Some(VendorError::of_body(status, &refused.0))
    });
    let Some(failure) = failure else { return response };
    let mut rendered = failure.render(vendor);
    for (name, value) in response.headers() {
        if !is_about_body(name) && !rendered.headers().contains_key(name) {
            rendered.headers_mut().append(name.clone(), value.clone());
        }
    }
    rendered
}

fn is_about_body(name: &HeaderName) -> bool {
    *name == CONTENT_TYPE || *name == CONTENT_LENGTH
}
