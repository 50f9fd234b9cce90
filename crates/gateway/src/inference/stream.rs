//! An answer as it comes. Events are written in the caller's dialect; a back-end's own bytes are passed on as
//! they are. When the reader goes, the body is dropped, and with it the call.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use engine::{RelayPart, RelayResponse};
use futures::stream;

use super::call_metadata::CallMetadata;
use super::response_encoder::{ResponseMeta, ResponseEncoder};
use crate::framing::Framing;
use crate::limits;
use crate::stream_limit::StreamPermit;
use crate::state::Gateway;
use crate::streaming::{self, OpenStream};

struct RelayBody {
    relayed: RelayResponse,
    voice: ResponseEncoder,
    /// The back-end speaks for itself, its end included.
    verbatim: bool,
    parts: Vec<RelayPart>,
    open: OpenStream,
    ended: bool,
}

pub(super) fn response(gateway: &Gateway, relayed: RelayResponse, manner: ResponseMeta, seat: Option<StreamPermit>) -> Response {
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
    /// Everything that is ready, in one piece.
    fn say(&mut self) -> Bytes {
        // A single piece of the back-end's own needs no copy.
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

    /// What is still owed when no more comes.
    fn last(&mut self) -> Bytes {
        self.ended = true;
        let mut bytes = Vec::new();
        if !self.verbatim {
            self.voice.before_finish(&mut bytes);
        }
        Bytes::from(bytes)
    }
}
