//! Response bodies that stream. A source yields the bytes of its format; the body sends heartbeats while the
//! source waits and counts what is sent. When the client disconnects, the body and its source are dropped.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use futures::stream;

use crate::framing::Framing;
use crate::metrics::Metrics;
use crate::state::Gateway;
use crate::stream_limit::StreamPermit;

/// Where the bytes of a stream come from.
pub(crate) trait FrameSource: Send + 'static {
    /// The next bytes, not empty; `None` at the end. Every heartbeat drops the future and calls again, so
    /// nothing may be lost while it waits.
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

/// Bytes that are ready when the response starts, before those of a source.
pub(crate) struct Preceded<S> {
    pub(crate) first: Bytes,
    pub(crate) rest: S,
}

impl<S: FrameSource> FrameSource for Preceded<S> {
    async fn next(&mut self) -> Option<Bytes> {
        match std::mem::take(&mut self.first) {
            first if first.is_empty() => self.rest.next().await,
            first => Some(first),
        }
    }
}

/// An open stream: counted in the metrics, with its permit.
pub(crate) struct OpenStream {
    metrics: Arc<Metrics>,
    _permit: Option<StreamPermit>,
}

impl OpenStream {
    pub(crate) fn new(gateway: &Gateway, permit: Option<StreamPermit>) -> Self {
        gateway.metrics.streams.inc();
        Self {
            metrics: gateway.metrics.clone(),
            _permit: permit,
        }
    }

    /// Counts sent bytes.
    pub(crate) fn count(&self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.metrics.stream_bytes.inc_by(bytes);
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.metrics.streams.dec();
    }
}

/// The response of a stream, with a heartbeat whenever the source is silent for the interval.
pub(crate) fn response(
    source: impl FrameSource,
    framing: Framing,
    heartbeat: Duration,
    open: OpenStream,
) -> Response {
    let pieces = stream::unfold((source, open), move |(mut source, open)| async move {
        let bytes = match tokio::time::timeout(heartbeat, source.next()).await {
            Ok(bytes) => bytes?,
            Err(_) => Bytes::from_static(framing.heartbeat()),
        };
        open.count(bytes.len());
        Some((Ok::<_, Infallible>(bytes), (source, open)))
    });
    (head(framing), Body::from_stream(pieces)).into_response()
}

/// Response headers of every stream.
pub(crate) fn head(framing: Framing) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(framing.content_type()));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Turns off response buffering in proxies.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    headers
}
