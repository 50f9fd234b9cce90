//! A resumable stream. Its events are encoded in the dialect of the client once, journaled with sequence
//! numbers, and always read from the journal; `id:` is run and number, so that `Last-Event-ID` is sufficient
//! to resume.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use engine::port::{EncodedEvent, EventKind};
use engine::{FrameEncoder, ReadFrom as Begin, RelayPart, Subscription};
use futures::stream;
use ir::{Dialect, Error, ErrorKind, Event, Phase, RunId};
use module::Code;
use module::envelope::ErrorBody;

use super::call_metadata::CallMetadata;
use super::error::VendorError;
use super::response_encoder::ResponseEncoder;
use crate::framing::Framing;
use crate::limits;
use crate::response::ApiError;
use crate::state::Gateway;
use crate::stream_limit::{ClientStreams, StreamPermit};
use crate::streaming::{self, OpenStream};

/// Encodes a response as journal frames.
#[derive(Debug)]
pub(super) struct Frames(pub(super) ResponseEncoder);

impl FrameEncoder for Frames {
    fn part(&mut self, part: RelayPart, frames: &mut Vec<String>) {
        let mut bytes = Vec::new();
        match part {
            RelayPart::Event(event) => self.0.encode(event, &mut bytes),
            RelayPart::Raw(piece) => bytes.extend_from_slice(&piece.bytes),
            RelayPart::Replay(events) => self.0.replay(&events),
        }
        let text = String::from_utf8_lossy(&bytes);
        frames.extend(text.split_inclusive("\n\n").map(String::from));
    }

    fn end(&mut self, _good: bool) -> String {
        let mut bytes = Vec::new();
        self.0.finish(&mut bytes);
        // Recovery writes an empty terminal frame for an unfinished response, so this one must not be empty.
        match bytes.is_empty() {
            true => String::from(": end\n\n"),
            false => String::from_utf8_lossy(&bytes).into_owned(),
        }
    }
}

/// Resume point: the run, and the number of the last received event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    run: RunId,
    seq: u64,
}

impl Place {
    pub(super) fn of(headers: &HeaderMap) -> Result<Option<Self>, VendorError> {
        let Some(value) = headers.get("last-event-id") else {
            return Ok(None);
        };
        let parts = value.to_str().ok().and_then(|text| text.trim().split_once(':'));
        let place = parts.and_then(|(run, seq)| {
            let (run, seq) = (run.parse().ok()?, seq.parse().ok()?);
            Some(Self { run, seq })
        });
        let unknown = || VendorError::invalid("Last-Event-ID is not an event id of this server");
        place.map(Some).ok_or_else(unknown)
    }

    /// Resumes the stream, for the client that started it.
    pub(super) async fn resume(
        self,
        dialect: Dialect,
        gateway: &Gateway,
        client: &ClientStreams,
    ) -> Result<Response, VendorError> {
        let caller = &client.caller;
        let row = gateway
            .engine()
            .find(&caller.tenant, self.run)
            .await
            .map_err(ApiError::from)?;
        let is_theirs = row.is_some_and(|row| row.module.is_empty() && row.client == caller.client);
        if !is_theirs {
            let body = ErrorBody::new(Code::E4013, format!("no resumable stream {}", self.run));
            return Err(VendorError::from(ApiError::new(body)));
        }
        let seat = gateway
            .stream_limiter
            .acquire(client, gateway.settings().streams_per_client_max)?;
        let rest = gateway
            .engine()
            .subscribe(&caller.tenant, self.run, Begin::AfterFrame(self.seq))
            .await;
        let rest = rest.map_err(ApiError::from)?;
        let receipt = CallMetadata {
            run: self.run,
            backend: None,
            attempts: None,
            cost_usd: None,
        };
        Ok(response(gateway, rest, dialect, seat, &receipt))
    }
}

struct ResumableBody {
    frames: Subscription,
    dialect: Dialect,
    open: OpenStream,
    /// The terminal event was sent.
    told: bool,
    ended: bool,
}

pub(super) fn response(
    gateway: &Gateway,
    frames: Subscription,
    dialect: Dialect,
    seat: StreamPermit,
    receipt: &CallMetadata,
) -> Response {
    let reader = ResumableBody {
        frames,
        dialect,
        open: OpenStream::new(gateway, Some(seat)),
        told: false,
        ended: false,
    };
    let body = Body::from_stream(stream::unfold(reader, next));
    let mut response = (streaming::head(Framing::Sse), body).into_response();
    receipt.write_headers(response.headers_mut());
    response
}

async fn next(mut reader: ResumableBody) -> Option<(Result<Bytes, Infallible>, ResumableBody)> {
    while !reader.ended {
        let events = tokio::time::timeout(limits::HEARTBEAT, reader.frames.next()).await;
        let mut bytes = Vec::new();
        match events {
            Err(_) => bytes.extend_from_slice(Framing::Sse.heartbeat()),
            Ok(Ok(Some(events))) => events.iter().for_each(|event| reader.frame(event, &mut bytes)),
            Ok(Ok(None)) if reader.told => reader.ended = true,
            // No terminal event: the server was killed during the run.
            Ok(Ok(None) | Err(_)) => reader.lose(&mut bytes),
        }
        if !bytes.is_empty() {
            reader.open.count(bytes.len());
            return Some((Ok(Bytes::from(bytes)), reader));
        }
    }
    None
}

impl ResumableBody {
    fn frame(&mut self, event: &EncodedEvent, bytes: &mut Vec<u8>) {
        self.told |= event.kind.is_terminal();
        match event.kind {
            EventKind::Chunk => {
                if let Some(seq) = event.seq {
                    let id = format!("id: {}:{seq}\n", self.frames.run());
                    bytes.extend_from_slice(id.as_bytes());
                }
                bytes.extend_from_slice(event.body.as_bytes());
            }
            EventKind::Error if event.body.is_empty() => self.lose(bytes),
            EventKind::Final | EventKind::Error => bytes.extend_from_slice(event.body.as_bytes()),
            EventKind::Meta | EventKind::Progress => {}
        }
    }

    /// Ends the stream with an error in the dialect of the client.
    fn lose(&mut self, bytes: &mut Vec<u8>) {
        self.ended = true;
        let message = "the response was interrupted and cannot be resumed";
        let error = Error::new(ErrorKind::Network, Phase::MidStream, message);
        let Some(mut encoder) = wire::Encoder::new(self.dialect) else {
            return;
        };
        let mut ledger = ir::Ledger::new(ir::Component::Adapter);
        encoder.push(&Event::Error { error }, bytes, &mut ledger);
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue};
    use ir::RunId;

    use super::Place;

    #[test]
    fn parses_last_event_id() {
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("last-event-id", HeaderValue::from_str(text).unwrap());
            Place::of(&headers)
        };
        let run = RunId::from_parts(1, 2);
        assert_eq!(of(&format!("{run}:7")).unwrap(), Some(Place { run, seq: 7 }));
        for text in ["7", "", "sess_x:7", &format!("{run}:"), &format!("{run}:-1")] {
            assert!(of(text).is_err(), "{text}");
        }
        assert_eq!(Place::of(&HeaderMap::new()).unwrap(), None);
    }
}
