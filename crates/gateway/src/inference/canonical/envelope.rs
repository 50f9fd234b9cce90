//! Canonical envelopes: decodes a body into a request, or into an error that names the problem, and encodes a
//! result as a response with exactly one of payload and error.

use axum::Json;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use engine::RelayFailure;
use ir::adaptation::{Action, Adaptation, Component};
use ir::envelope::{BackendInfo, VERSIONS};
use ir::{
    ChatResponse, Dialect, Error, ErrorKind, Operation, Payload, Phase, Request, ResponsePayload, RunId,
};
use module::code;
use serde_json::{Map, Value, json};
use spill::MediaPlaceholders;
use wire::field_type;

use crate::headers::RUN_HEADER;
use crate::inference::streamed_json;
use crate::response::ApiError;

/// What each response repeats of its request, and the requested form of vectors or images.
#[derive(Clone, Debug, Default)]
pub(super) struct ResponseContext {
    request_id: String,
    operation: Value,
    run: Option<RunId>,
    pub(super) form: Option<String>,
}

impl ResponseContext {
    pub(super) fn of(request: &Request) -> Self {
        let form = match &request.payload {
            Payload::Embeddings(request) => request.encoding_format.clone(),
            Payload::Image(request) => request.response_format.clone(),
            _ => None,
        };
        Self {
            request_id: request.request_id.clone(),
            operation: Value::from(request.operation().as_str()),
            run: None,
            form,
        }
    }

    pub(super) fn with_run(mut self, run: RunId) -> Self {
        self.run = Some(run);
        self
    }

    /// The request id, or the run id if the client sent none.
    fn request_id(&self) -> String {
        match (self.request_id.is_empty(), self.run) {
            (true, Some(run)) => run.to_string(),
            _ => self.request_id.clone(),
        }
    }
}

/// An error response.
#[derive(Debug)]
pub(super) struct CanonicalError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    named: ResponseContext,
    error: Error,
    attempts: Option<u32>,
    status: StatusCode,
}

impl CanonicalError {
    pub(super) fn of(named: ResponseContext, error: Error) -> Self {
        let status = StatusCode::from_u16(wire::error_body::status_of(&error));
        Self(Box::new(Inner {
            named,
            status: status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            error,
            attempts: None,
        }))
    }

    /// An error from before the engine was called.
    pub(super) fn refused(named: ResponseContext, refusal: ApiError) -> Self {
        let (status, body) = refusal.into_parts();
        let kind = match status.as_u16() {
            401 | 403 => ErrorKind::Auth,
            402 => ErrorKind::Quota,
            429 | 503 => ErrorKind::RateLimited,
            400..=499 => ErrorKind::InvalidRequest,
            _ => ErrorKind::Internal,
        };
        let mut error = Error::new(kind, Phase::BeforeSend, body.message);
        error.provider_code = Some(body.code);
        let details = body.details.unwrap_or_default();
        error.retry_after_ms = details.get("retry_after_ms").and_then(Value::as_u64);
        let mut failure = Self::of(named, error);
        failure.0.status = status;
        failure
    }

    /// A failed module run; its code determines the status.
    pub(super) fn of_module(named: ResponseContext, error: Error) -> Self {
        let status = error.provider_code.as_deref().map(code::http_status);
        let mut failure = Self::of(named, error);
        let status = status.and_then(|status| StatusCode::from_u16(status).ok());
        failure.0.status = status.unwrap_or(failure.0.status);
        failure
    }

    pub(super) fn failed(named: ResponseContext, failed: RelayFailure) -> Self {
        let mut failure = Self::of(named.with_run(failed.run), failed.error);
        failure.0.attempts = Some(failed.attempts);
        // Authentication errors of a back-end concern the keys of this server; their details are not exposed.
        if failure.0.error.kind == ErrorKind::Auth {
            failure.0.error.message = String::from("the back-end did not accept this server's credentials");
            failure.0.status = StatusCode::BAD_GATEWAY;
        }
        failure
    }
}

impl IntoResponse for CanonicalError {
    fn into_response(self) -> Response {
        let inner = *self.0;
        let mut envelope = json!({
            "version": VERSIONS.last(),
            "request_id": inner.named.request_id(),
            "operation": inner.named.operation,
            "result": {"error": inner.error},
        });
        if let Some(attempts) = inner.attempts {
            envelope["backend"] = json!({"attempts": attempts});
        }
        let response = (inner.status, Json(envelope)).into_response();
        with_run(response, inner.named.run)
    }
}

/// A payload with its back-end.
#[derive(Debug)]
pub(super) struct CanonicalAnswer {
    pub(super) backend: BackendInfo,
    pub(super) payload: ResponsePayload,
    /// Placeholders of media that is not in memory.
    pub(super) placeholders: MediaPlaceholders,
    pub(super) adaptations: Vec<Adaptation>,
    pub(super) raw: Option<Value>,
}

/// Encodes a successful response.
pub(super) fn success_response(named: ResponseContext, run: RunId, answer: CanonicalAnswer) -> Response {
    let named = named.with_run(run);
    let mut response = ir::Response::new(named.request_id(), answer.payload);
    response.backend = Some(answer.backend);
    response.adaptations = answer.adaptations;
    response.raw = answer.raw;
    with_run(streamed_json::json(&response, &answer.placeholders), Some(run))
}

/// Encodes the response of a module run, with its envelope in the extension `cogn`.
pub(super) fn module_response(
    named: ResponseContext,
    run: RunId,
    answer: ChatResponse,
    envelope: Value,
    adaptations: Vec<Adaptation>,
) -> Response {
    let named = named.with_run(run);
    let payload = ResponsePayload::Chat(Box::new(answer));
    let mut response = ir::Response::new(named.request_id(), payload);
    response.adaptations = adaptations;
    response.rest.insert(String::from("cogn"), envelope);
    with_run(Json(response).into_response(), Some(run))
}

fn with_run(mut response: Response, run: Option<RunId>) -> Response {
    if let Some(Ok(run)) = run.map(|run| HeaderValue::from_str(&run.to_string())) {
        response.headers_mut().insert(RUN_HEADER, run);
    }
    response
}

/// Decodes a request. The version is checked first, because it determines the format of the rest.
pub(super) fn read(body: Value) -> Result<Request, CanonicalError> {
    let Value::Object(map) = body else {
        return Err(wrong(&Map::new(), "the body is not an object"));
    };
    if let Some(version) = map.get("version").filter(|version| !version.is_null()) {
        let known = version.as_u64().and_then(|version| u32::try_from(version).ok());
        if !known.is_some_and(|version| VERSIONS.contains(&version)) {
            let message = format!("envelope version {version} is not supported; supported: {VERSIONS:?}");
            return Err(wrong(&map, message));
        }
    }
    let operation = map.get("operation").and_then(Value::as_str).unwrap_or_default();
    let known = Operation::ALL.map(Operation::as_str);
    if operation.is_empty() {
        return Err(wrong(&map, "`operation` is missing"));
    }
    if !known.contains(&operation) {
        let message = format!("unknown operation {operation}; supported: {}", known.join(", "));
        let error = Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message);
        return Err(CanonicalError::of(name(&map), error));
    }
    if operation == Operation::ChatCompletions.as_str()
        && let Some(misfit) = field_type::find_mismatch(Dialect::Canonical, &map)
    {
        return Err(wrong(&map, misfit.message));
    }
    let named = name(&map);
    let request: Request = serde_json::from_value(Value::Object(map))
        .map_err(|error| CanonicalError::of(named.clone(), Error::invalid_request(error.to_string())))?;
    request
        .check()
        .map_err(|error| CanonicalError::of(named, error))?;
    Ok(request)
}

fn wrong(map: &Map<String, Value>, message: impl Into<String>) -> CanonicalError {
    CanonicalError::of(name(map), Error::invalid_request(message))
}

/// Request id and operation, as far as an invalid body has them.
fn name(map: &Map<String, Value>) -> ResponseContext {
    let request_id = match map.get("request_id") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let operation = map.get("operation").filter(|operation| operation.is_string());
    ResponseContext {
        request_id,
        operation: operation.cloned().unwrap_or_default(),
        ..ResponseContext::default()
    }
}

/// Removes the adaptations that a back-end reported in its stream from the warnings.
pub(super) fn take_adaptations(response: &mut ChatResponse) -> Vec<Adaptation> {
    let warnings = std::mem::take(&mut response.warnings);
    let (changes, others): (Vec<_>, Vec<_>) = warnings.into_iter().partition(|one| one.code == "adapted");
    response.warnings = others;
    let changes = changes.into_iter().map(|warning| {
        let (pointer, reason) = warning.message.split_once(": ").unwrap_or(("", &warning.message));
        // Patches and extra fields are either applied or dropped.
        let action = match pointer.starts_with("/patches") || pointer.starts_with("/extra") {
            true => Action::Dropped,
            false => Action::Replaced,
        };
        Adaptation {
            pointer: String::from(pointer),
            action,
            asked: None,
            applied: None,
            reason: String::from(reason),
            by: Component::Adapter,
        }
    });
    changes.collect()
}
