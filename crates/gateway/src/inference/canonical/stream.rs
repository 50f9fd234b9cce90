//! A chat as canonical events, one JSON object each, as server-sent events or NDJSON. The last one is a
//! finish or an error. When the client disconnects, the call is cancelled.

use axum::body::Bytes;
use axum::response::Response;
use engine::{RelayPart, RelayResponse};
use ir::Event;
use ir::adaptation::Adaptation;
use ir::event::{ADAPTED, Warning};

use crate::framing::Framing;
use crate::inference::call_metadata::CallMetadata;
use crate::limits;
use crate::streaming::{self, FrameSource, OpenStream, Preceded};

struct CanonicalEvents {
    relayed: RelayResponse,
    framing: Framing,
    ended: bool,
}

impl FrameSource for CanonicalEvents {
    async fn next(&mut self) -> Option<Bytes> {
        let (mut parts, mut bytes) = (Vec::new(), Vec::new());
        while !self.ended && bytes.is_empty() {
            self.ended = !self.relayed.next_parts(&mut parts).await;
            for part in parts.drain(..) {
                // Without a vendor dialect, all parts are events.
                if let RelayPart::Event(event) = part {
                    self.ended |= matches!(event, Event::Error { .. });
                    write(self.framing, &event, &mut bytes);
                }
            }
        }
        (!bytes.is_empty()).then(|| Bytes::from(bytes))
    }
}

pub(super) fn response(
    relayed: RelayResponse,
    framing: Framing,
    changes: Vec<Adaptation>,
    open: OpenStream,
) -> Response {
    let metadata = CallMetadata::of(&relayed);
    let events = Preceded {
        first: Bytes::from(announce(framing, changes)),
        rest: CanonicalEvents {
            relayed,
            framing,
            ended: false,
        },
    };
    let mut response = streaming::response(events, framing, limits::HEARTBEAT, open);
    metadata.write_headers(response.headers_mut());
    response
}

/// Adaptations of the request as warning events.
pub(super) fn announce(framing: Framing, changes: Vec<Adaptation>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for change in changes {
        let warning = Warning::new(ADAPTED, format!("{}: {}", change.pointer, change.reason));
        write(framing, &Event::Warning { warning }, &mut bytes);
    }
    bytes
}

pub(super) fn write(framing: Framing, event: &Event, bytes: &mut Vec<u8>) {
    if let Ok(document) = serde_json::to_vec(event) {
        framing.write(&document, bytes);
    }
}
