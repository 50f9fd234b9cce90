//! A chat as canonical events, one JSON object each, as server-sent events or NDJSON. The last one is a
//! finish or an error. When the client disconnects, the body and with it the call are dropped.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use engine::{RelayPart, RelayResponse};
use futures::stream;
use ir::adaptation::Adaptation;
use ir::event::{ADAPTED, Warning};
use ir::{Event, Payload, Request};

use crate::inference::call_metadata::CallMetadata;
use crate::limits::HEARTBEAT;
use crate::stream_limit::StreamPermit;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CanonicalFraming {
    Sse,
    Lines,
}

impl CanonicalFraming {
    /// From the `Accept` header, otherwise from the payload; `None` is a complete response.
    pub(super) fn of(headers: &HeaderMap, request: &Request) -> Option<Self> {
        let Payload::Chat(chat) = &request.payload else {
            return None;
        };
        let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
        let accept = accept.unwrap_or_default();
        if accept.contains("text/event-stream") {
            Some(Self::Sse)
        } else if accept.contains("application/x-ndjson") {
            Some(Self::Lines)
        } else {
            chat.streams().then_some(Self::Sse)
        }
    }

    /// Response headers of a stream.
    pub(super) fn head(self) -> HeaderMap {
        let kind = match self {
            Self::Sse => "text/event-stream",
            Self::Lines => "application/x-ndjson",
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        headers
    }

    pub(super) fn write(self, event: &Event, bytes: &mut Vec<u8>) {
        let Ok(body) = serde_json::to_vec(event) else {
            return;
        };
        match self {
            Self::Sse => {
                bytes.extend_from_slice(b"data: ");
                bytes.extend_from_slice(&body);
                bytes.extend_from_slice(b"\n\n");
            }
            Self::Lines => {
                bytes.extend_from_slice(&body);
                bytes.push(b'\n');
            }
        }
    }

    /// A heartbeat, which is not an event.
    pub(super) fn heartbeat(self) -> &'static [u8] {
        match self {
            Self::Sse => b": hb\n\n",
            Self::Lines => b"\n",
        }
    }
}

struct CanonicalBody {
    relayed: RelayResponse,
    framing: CanonicalFraming,
    first: Option<Vec<u8>>,
    ended: bool,
    _seat: Option<StreamPermit>,
}

pub(super) fn response(
    relayed: RelayResponse,
    framing: CanonicalFraming,
    changes: Vec<Adaptation>,
    seat: Option<StreamPermit>,
) -> Response {
    let mut headers = framing.head();
    CallMetadata::of(&relayed).write_headers(&mut headers);
    let first = announce(framing, changes);
    let reader = CanonicalBody {
        relayed,
        framing,
        first: (!first.is_empty()).then_some(first),
        ended: false,
        _seat: seat,
    };
    (headers, Body::from_stream(stream::unfold(reader, next))).into_response()
}

/// Adaptations of the request as warning events.
pub(super) fn announce(framing: CanonicalFraming, changes: Vec<Adaptation>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for change in changes {
        let warning = Warning::new(ADAPTED, format!("{}: {}", change.pointer, change.reason));
        framing.write(&Event::Warning { warning }, &mut bytes);
    }
    bytes
}

async fn next(mut reader: CanonicalBody) -> Option<(Result<Bytes, Infallible>, CanonicalBody)> {
    if let Some(first) = reader.first.take() {
        return Some((Ok(Bytes::from(first)), reader));
    }
    if reader.ended {
        return None;
    }
    let mut parts = Vec::new();
    let bytes = match tokio::time::timeout(HEARTBEAT, reader.relayed.next_parts(&mut parts)).await {
        Err(_) => Bytes::from_static(reader.framing.heartbeat()),
        Ok(false) => return None,
        Ok(true) => {
            let mut bytes = Vec::new();
            for part in parts.drain(..) {
                // Without a vendor dialect, all parts are events.
                if let RelayPart::Event(event) = part {
                    reader.ended |= matches!(event, Event::Error { .. });
                    reader.framing.write(&event, &mut bytes);
                }
            }
            Bytes::from(bytes)
        }
    };
    Some((Ok(bytes), reader))
}
