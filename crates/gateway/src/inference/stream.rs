//! A relayed response as a stream. Events are encoded in the dialect of the client; raw bytes of a back-end
//! are forwarded unchanged. When the client disconnects, the body and with it the call are dropped.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use engine::{RelayPart, RelayResponse};
use futures::stream;

use super::call_metadata::CallMetadata;
use super::response_encoder::{ResponseEncoder, ResponseMeta};
use crate::framing::Framing;
use crate::limits;
use crate::state::Gateway;
use crate::stream_limit::StreamPermit;
use crate::streaming::{self, OpenStream};

struct RelayBody {
    relayed: RelayResponse,
    voice: ResponseEncoder,
    /// Raw bytes are forwarded, including the end of the stream.
    verbatim: bool,
    parts: Vec<RelayPart>,
    open: OpenStream,
    ended: bool,
}

pub(super) fn response(
    gateway: &Gateway,
    relayed: RelayResponse,
    manner: ResponseMeta,
    seat: Option<StreamPermit>,
) -> Response {
    let receipt = CallMetadata::of(&relayed);
    let reader = RelayBody {
        relayed,
        voice: ResponseEncoder::new(manner),
        verbatim: false,
        parts: Vec::new(),
        open: OpenStream::new(gateway, seat),
        ended: false,
    };
    let body = Body::from_stream(stream::unfold(reader, next));
    let mut response = (streaming::head(Framing::Sse), body).into_response();
    receipt.write_headers(response.headers_mut());
    response
}

async fn next(mut reader: RelayBody) -> Option<(Result<Bytes, Infallible>, RelayBody)> {
    while !reader.ended {
        let RelayBody { relayed, parts, .. } = &mut reader;
        let more = tokio::time::timeout(limits::HEARTBEAT, relayed.next_parts(parts)).await;
        let bytes = match more {
            Err(_) => Bytes::from_static(Framing::Sse.heartbeat()),
            Ok(true) => reader.say(),
            Ok(false) => reader.last(),
        };
        if !bytes.is_empty() {
            reader.open.count(bytes.len());
            return Some((Ok(bytes), reader));
        }
    }
    None
}

impl RelayBody {
    /// Encodes all ready parts into one buffer.
    fn say(&mut self) -> Bytes {
        // A single raw chunk needs no copy.
        if let [RelayPart::Raw(piece)] = self.parts.as_mut_slice() {
            self.verbatim = true;
            let bytes = std::mem::take(&mut piece.bytes);
            self.parts.clear();
            return bytes;
        }
        let mut bytes = Vec::new();
        for part in self.parts.drain(..) {
            match part {
                RelayPart::Raw(piece) => {
                    self.verbatim = true;
                    bytes.extend_from_slice(&piece.bytes);
                }
                RelayPart::Replay(events) => {
                    self.verbatim = false;
                    self.voice.replay(&events);
                }
                RelayPart::Event(event) => {
                    self.verbatim = false;
                    self.voice.encode(event, &mut bytes);
                }
            }
        }
        Bytes::from(bytes)
    }

    /// Encodes the end of the stream, unless it was forwarded.
    fn last(&mut self) -> Bytes {
        self.ended = true;
        let mut bytes = Vec::new();
        if !self.verbatim {
            self.voice.finish(&mut bytes);
        }
        Bytes::from(bytes)
    }
}
