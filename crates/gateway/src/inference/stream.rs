//! A relayed response as a stream. Events are encoded in the dialect of the client; raw bytes of a back-end
//! are forwarded unchanged. When the client disconnects, the call is cancelled.

use axum::body::Bytes;
use axum::response::Response;
use engine::{RelayPart, RelayResponse};

use super::call_metadata::CallMetadata;
use super::response_encoder::{ResponseEncoder, ResponseMeta};
use crate::framing::Framing;
use crate::limits;
use crate::streaming::{self, FrameSource, OpenStream};

struct RelayedParts {
    relayed: RelayResponse,
    encoder: ResponseEncoder,
    /// Raw bytes are forwarded, including the end of the stream.
    verbatim: bool,
    parts: Vec<RelayPart>,
    ended: bool,
}

pub(super) fn response(relayed: RelayResponse, meta: ResponseMeta, open: OpenStream) -> Response {
    let metadata = CallMetadata::of(&relayed);
    let parts = RelayedParts {
        relayed,
        encoder: ResponseEncoder::new(meta),
        verbatim: false,
        parts: Vec::new(),
        ended: false,
    };
    let mut response = streaming::response(parts, Framing::Sse, limits::HEARTBEAT, open);
    metadata.write_headers(response.headers_mut());
    response
}

impl FrameSource for RelayedParts {
    async fn next(&mut self) -> Option<Bytes> {
        while !self.ended {
            let bytes = match self.relayed.next_parts(&mut self.parts).await {
                true => self.encode(),
                false => self.finish(),
            };
            if !bytes.is_empty() {
                return Some(bytes);
            }
        }
        None
    }
}

impl RelayedParts {
    /// Encodes all ready parts into one buffer.
    fn encode(&mut self) -> Bytes {
        // A single raw chunk needs no copy.
        if let [RelayPart::Raw(piece)] = self.parts.as_mut_slice() {
            self.verbatim = true;
            let bytes = std::mem::take(&mut piece.bytes);
            self.parts.clear();
            return bytes;
        }
        let mut bytes = Vec::new();
        for part in self.parts.drain(..) {
            self.verbatim = matches!(part, RelayPart::Raw(_));
            match part {
                RelayPart::Raw(piece) => bytes.extend_from_slice(&piece.bytes),
                RelayPart::Replay(events) => self.encoder.replay(&events),
                RelayPart::Event(event) => self.encoder.encode(event, &mut bytes),
            }
        }
        Bytes::from(bytes)
    }

    /// Encodes the end of the stream, unless it was forwarded.
    fn finish(&mut self) -> Bytes {
        self.ended = true;
        let mut bytes = Vec::new();
        if !self.verbatim {
            self.encoder.finish(&mut bytes);
        }
        Bytes::from(bytes)
    }
}
