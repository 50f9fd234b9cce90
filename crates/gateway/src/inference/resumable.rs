//! A resumable stream. Its events are encoded in the dialect of the client once, journaled with sequence
//! numbers, and always read from the journal; `id:` is run and number, so that `Last-Event-ID` is sufficient
//! to resume.

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::response::Response;
use engine::port::{EncodedEvent, EventKind};
use engine::{FrameEncoder, ReadFrom, RelayPart, RunMode, Subscription};
use ir::{Dialect, Error, ErrorKind, Event, Phase, RunId};
use module::Code;
use module::envelope::ErrorBody;

use super::call_metadata::CallMetadata;
use super::error::VendorError;
use super::response_encoder::ResponseEncoder;
use crate::framing::Framing;
use crate::limits;
use crate::response::ApiError;
use crate::resume;
use crate::state::Gateway;
use crate::stream_limit::ClientStreams;
use crate::streaming::{self, FrameSource, OpenStream};

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
        String::from_utf8_lossy(&bytes).into_owned()
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
        let from = ReadFrom::AfterFrame(self.seq);
        let resumed = resume::open(gateway, client, self.run, None, from, RunMode::Stream).await;
        let resumed = resumed.map_err(|error| {
            let body = ErrorBody::new(Code::E4013, format!("no resumable stream {}", self.run));
            error.or(ApiError::new(body))
        })?;
        let metadata = CallMetadata {
            run: self.run,
            backend: None,
            attempts: None,
            cost_usd: None,
        };
        let open = OpenStream::new(gateway, resumed.permit);
        Ok(response(resumed.subscription, dialect, open, &metadata))
    }
}

struct JournaledFrames {
    frames: Subscription,
    dialect: Dialect,
    /// The terminal event was sent.
    terminated: bool,
    ended: bool,
}

pub(super) fn response(
    frames: Subscription,
    dialect: Dialect,
    open: OpenStream,
    metadata: &CallMetadata,
) -> Response {
    let frames = JournaledFrames {
        frames,
        dialect,
        terminated: false,
        ended: false,
    };
    let mut response = streaming::response(frames, Framing::Sse, limits::HEARTBEAT, open);
    metadata.write_headers(response.headers_mut());
    response
}

impl FrameSource for JournaledFrames {
    async fn next(&mut self) -> Option<Bytes> {
        let mut bytes = Vec::new();
        while !self.ended && bytes.is_empty() {
            match self.frames.next().await {
                Ok(Some(events)) => events.iter().for_each(|event| self.write(event, &mut bytes)),
                Ok(None) if self.terminated => self.ended = true,
                // No terminal event: the server was killed during the run.
                Ok(None) | Err(_) => self.fail(&mut bytes),
            }
        }
        (!bytes.is_empty()).then(|| Bytes::from(bytes))
    }
}

impl JournaledFrames {
    fn write(&mut self, event: &EncodedEvent, bytes: &mut Vec<u8>) {
        self.terminated |= event.kind.is_terminal();
        match event.kind {
            EventKind::Chunk => {
                if let Some(seq) = event.seq {
                    let id = format!("id: {}:{seq}\n", self.frames.run());
                    bytes.extend_from_slice(id.as_bytes());
                }
                bytes.extend_from_slice(event.body.as_bytes());
            }
            EventKind::Interrupted => self.fail(bytes),
            EventKind::Final | EventKind::Error => bytes.extend_from_slice(event.body.as_bytes()),
            EventKind::Meta | EventKind::Progress => {}
        }
    }

    /// Ends the stream with an error in the dialect of the client.
    fn fail(&mut self, bytes: &mut Vec<u8>) {
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
