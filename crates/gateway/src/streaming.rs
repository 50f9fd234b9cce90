//! A subscription as a response body: framed events, with heartbeats in between. When the client disconnects,
//! the body and with it the subscription are dropped; the run is not affected otherwise.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use engine::Subscription;
use engine::port::{EncodedEvent, EventKind};
use futures::stream;
use module::envelope::Envelope;
use module::stream::Chunk;

use crate::framing::Framing;
use crate::headers::SESSION_HEADER;
use crate::limits;
use crate::metrics::Metrics;
use crate::state::Gateway;
use crate::stream_limit::StreamPermit;

struct EventBody {
    subscription: Subscription,
    framing: Framing,
    heartbeat: Duration,
    /// Events received before the headers were sent.
    first: Option<Heard>,
    ended: bool,
    open: OpenStream,
}

/// The next events of a subscription; `None` at its end.
type Heard = Result<Option<Vec<EncodedEvent>>, engine::Error>;

/// Counts an open stream in the metrics and holds its permit.
pub(crate) struct OpenStream {
    metrics: Arc<Metrics>,
    _seat: Option<StreamPermit>,
}

impl OpenStream {
    pub(crate) fn new(gateway: &Gateway, seat: Option<StreamPermit>) -> Self {
        gateway.metrics.streams.inc();
        Self {
            metrics: gateway.metrics.clone(),
            _seat: seat,
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

/// The first events share a write with the headers if they arrive within `FIRST_EVENT_WAIT`.
pub(crate) async fn response(
    gateway: &Gateway,
    mut subscription: Subscription,
    framing: Framing,
    heartbeat: Duration,
    seat: Option<StreamPermit>,
) -> Response {
    let mut headers = head(framing);
    if let Ok(run) = HeaderValue::from_str(&subscription.run().to_string()) {
        headers.insert(SESSION_HEADER, run);
    }
    let open = OpenStream::new(gateway, seat);
    let first = tokio::time::timeout(limits::FIRST_EVENT_WAIT, subscription.next()).await;
    let reader = EventBody {
        subscription,
        framing,
        heartbeat,
        first: first.ok(),
        ended: false,
        open,
    };
    (headers, Body::from_stream(stream::unfold(reader, next))).into_response()
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

async fn next(mut reader: EventBody) -> Option<(Result<Bytes, Infallible>, EventBody)> {
    if reader.ended {
        return None;
    }
    let heard = match reader.first.take() {
        Some(first) => Ok(first),
        None => tokio::time::timeout(reader.heartbeat, reader.subscription.next()).await,
    };
    let bytes = match heard {
        Err(_) => Bytes::from_static(reader.framing.heartbeat()),
        Ok(Ok(Some(events))) => Bytes::from(reader.framing.frame(&events)),
        Ok(Ok(None)) => return None,
        Ok(Err(error)) => {
            reader.ended = true;
            let last = last_word(reader.subscription.run().to_string().as_str(), error);
            Bytes::from(reader.framing.frame(&[last]))
        }
    };
    reader.open.count(bytes.len());
    Some((Ok(bytes), reader))
}

/// The terminal event of a stream whose subscription failed.
pub(crate) fn last_word(run: &str, error: engine::Error) -> EncodedEvent {
    let chunk = Chunk::ending(run, Envelope::failure(error.into_body()), None, None);
    EncodedEvent {
        kind: EventKind::Error,
        seq: None,
        body: Arc::from(serde_json::to_string(&chunk).unwrap_or_default()),
    }
}
