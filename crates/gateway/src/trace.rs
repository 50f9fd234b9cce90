//! Trace context of the caller: read from `traceparent` and returned as the span of the run. An invalid value
//! is ignored; it never fails a request.

use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use ir::{RunId, TraceContext};

use crate::headers::SESSION_HEADER;

const HEADER: &str = "traceparent";

pub(crate) fn of(headers: &HeaderMap) -> Option<TraceContext> {
    headers.get(HEADER)?.to_str().ok()?.trim().parse().ok()
}

/// Adds the span of the run in the trace of the caller.
pub(crate) fn write_header(response: Response, trace: Option<TraceContext>) -> Response {
    let session = response.headers().get(SESSION_HEADER);
    let run = session.and_then(|value| value.to_str().ok()?.parse::<RunId>().ok());
    match run {
        Some(run) => write_run_header(response, trace, run),
        None => response,
    }
}

/// The same for a known run.
pub(crate) fn write_run_header(mut response: Response, trace: Option<TraceContext>, run: RunId) -> Response {
    if let Some(trace) = trace
        && let Ok(value) = HeaderValue::from_str(&trace.child(run.seed()).to_string())
    {
        response.headers_mut().insert(HEADER, value);
    }
    response
}
