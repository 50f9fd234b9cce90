//! The events of a module run as a stream. A client that disconnects drops only its subscription.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::HeaderValue;
use axum::response::Response;
use engine::Subscription;
use engine::port::{EncodedEvent, EventKind};
use ir::RunId;
use module::envelope::Envelope;
use module::stream::Chunk;

use crate::framing::Framing;
use crate::headers::SESSION_HEADER;
use crate::streaming::{self, FrameSource, OpenStream};

struct RunEvents {
    subscription: Subscription,
    framing: Framing,
    failed: bool,
}

impl FrameSource for RunEvents {
    async fn next(&mut self) -> Option<Bytes> {
        if self.failed {
            return None;
        }
        let events = match self.subscription.next().await {
            Ok(events) => events?,
            Err(error) => {
                self.failed = true;
                vec![failure_event(self.subscription.run(), error)]
            }
        };
        Some(Bytes::from(self.framing.frame(&events)))
    }
}

pub(crate) fn response(
    subscription: Subscription,
    framing: Framing,
    heartbeat: Duration,
    open: OpenStream,
) -> Response {
    let run = subscription.run();
    let events = RunEvents {
        subscription,
        framing,
        failed: false,
    };
    let mut response = streaming::response(events, framing, heartbeat, open);
    if let Ok(run) = HeaderValue::from_str(&run.to_string()) {
        response.headers_mut().insert(SESSION_HEADER, run);
    }
    response
}

/// The terminal event of a stream whose subscription failed.
pub(crate) fn failure_event(run: RunId, error: engine::Error) -> EncodedEvent {
    let chunk = Chunk::ending(&run.to_string(), Envelope::failure(error.into_body()), None, None);
    EncodedEvent {
        kind: EventKind::Error,
        seq: None,
        body: Arc::from(serde_json::to_string(&chunk).unwrap_or_default()),
    }
}
