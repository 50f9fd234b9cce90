//! The caller's trace: taken from `traceparent`, and given back as the place of the run in it. What is no
//! trace context is no trace; it never fails a request.

use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use ir::{RunId, TraceContext};

use crate::headers::SESSION_HEADER;

const HEADER: &str = "traceparent";

pub(crate) fn of(headers: &HeaderMap) -> Option<TraceContext> {
    headers.get(HEADER)?.to_str().ok()?.trim().parse().ok()
}

/// With the run's own place in the caller's trace.
pub(crate) fn write_header(response: Response, trace: Option<TraceContext>) -> Response {
    let session = response.headers().get(SESSION_HEADER);
    let run = session.and_then(|value| value.to_str().ok()?.parse::<RunId>().ok());
    match run {
        Some(run) => write_run_header(response, trace, run),
        None => response,
    }
}

/// The same for a run that is known.
pub(crate) fn write_run_header(mut response: Response, trace: Option<TraceContext>, run: RunId) -> Response {
    if let Some(trace) = trace
        && let Ok(value) = HeaderValue::from_str(&trace.child(run.seed()).to_string())
    {
        response.headers_mut().insert(HEADER, value);
    }
    response
}
