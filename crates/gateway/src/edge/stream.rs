//! An answer as it comes. Events are written in the caller's dialect; a back-end's own bytes are passed on as
//! they are. When the reader goes, the body is dropped, and with it the call.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use engine::{Part, Relayed};
use futures::{FutureExt, stream};
use tokio::time::Instant;

use super::receipt::Receipt;
use super::voice::{Manner, Voice};
use crate::framing::Framing;
use crate::limits;
use crate::seats::Seat;
use crate::state::Gateway;
use crate::streaming::{self, OpenStream};

struct Reader {
    relayed: Relayed,
    voice: Voice,
    /// The back-end speaks for itself, its end included.
    verbatim: bool,
    parts: Vec<Part>,
    /// When the reader was last written to.
    written: Instant,
    /// Writes that are still to go out at once.
    first_writes: u32,
    open: OpenStream,
    ended: bool,
}

pub(super) fn response(gateway: &Gateway, relayed: Relayed, manner: Manner, seat: Option<Seat>) -> Response {
    let receipt = Receipt::of(&relayed);
    let reader = Reader {
        relayed,
        voice: Voice::new(manner),
        verbatim: false,
        parts: Vec::new(),
        written: Instant::now(),
        first_writes: limits::FIRST_WRITES,
        open: OpenStream::new(gateway, seat),
        ended: false,
    };
    let body = Body::from_stream(stream::unfold(reader, next));
    let mut response = (streaming::head(Framing::Sse), body).into_response();
    receipt.put(response.headers_mut());
    response
}

async fn next(mut reader: Reader) -> Option<(Result<Bytes, Infallible>, Reader)> {
    while !reader.ended {
        let Reader { relayed, parts, .. } = &mut reader;
        let more = tokio::time::timeout(limits::HEARTBEAT, relayed.next_parts(parts)).await;
        let bytes = match more {
            Err(_) => Bytes::from_static(Framing::Sse.heartbeat()),
            Ok(true) => {
                reader.gather().await;
                reader.say()
            }
            Ok(false) => reader.last(),
        };
        if !bytes.is_empty() {
            reader.open.count(bytes.len());
            return Some((Ok(bytes), reader));
        }
    }
    None
}

impl Reader {
    /// A reader that was written to a moment ago gets what comes in the next moment in one write. Nobody waits
    /// for the first words, and at the pace of people nobody waits at all.
    async fn gather(&mut self) {
        let now = Instant::now();
        let due = std::mem::replace(&mut self.written, now) + limits::WRITE_PAUSE;
        if self.first_writes > 0 {
            self.first_writes -= 1;
            return;
        }
        if due > now {
            tokio::time::sleep_until(due).await;
            self.written = due;
        }
        while self.parts.len() < limits::PARTS_TOGETHER_MAX {
            // The back-end's connection hands over one piece at a time.
            tokio::task::yield_now().await;
            let more = self.relayed.next_parts(&mut self.parts).now_or_never();
            if more != Some(true) {
                return;
            }
        }
    }

    /// Everything that is ready, in one piece.
    fn say(&mut self) -> Bytes {
        // A single piece of the back-end's own needs no copy.
        if let [Part::Verbatim(piece)] = self.parts.as_mut_slice() {
            self.verbatim = true;
            let bytes = std::mem::take(&mut piece.bytes);
            self.parts.clear();
            return bytes;
        }
        let mut bytes = Vec::new();
        for part in self.parts.drain(..) {
            match part {
                Part::Verbatim(piece) => {
                    self.verbatim = true;
                    bytes.extend_from_slice(&piece.bytes);
                }
                Part::SoFar(events) => {
                    self.verbatim = false;
                    self.voice.catch_up(&events);
                }
                Part::Event(event) => {
                    self.verbatim = false;
                    self.voice.say(event, &mut bytes);
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
            self.voice.end(&mut bytes);
        }
        Bytes::from(bytes)
    }
}
