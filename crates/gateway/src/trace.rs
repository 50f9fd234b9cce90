//! Trace context of the caller: read from `traceparent` and returned as the span of the run. An invalid value
//! is ignored; it never fails a request.

use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use ir::{RunId, TraceContext};

const HEADER: &str = "traceparent";

pub(crate) fn of(headers: &HeaderMap) -> Option<TraceContext> {
    headers.get(HEADER)?.to_str().ok()?.trim().parse().ok()
}

/// Adds the span of the run in the trace of the caller.
pub(crate) fn write_run_header(mut response: Response, trace: Option<TraceContext>, run: RunId) -> Response {
    if let Some(trace) = trace
        && let Ok(value) = HeaderValue::from_str(&trace.child(run.seed()).to_string())
    {
        response.headers_mut().insert(HEADER, value);
    }
    response
}
