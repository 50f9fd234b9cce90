//! Chunks to the events that are journaled and sent, and the last event back to an envelope.

use std::sync::Arc;

use module::stream::{self, Assembler, Chunk, envelope_of};
use serde_json::Value;

use crate::port::{EventKind, EncodedEvent};

/// Renders once; every framing sends these bytes.
pub(crate) fn encode(chunk: &Chunk) -> EncodedEvent {
    let kind = match chunk {
        Chunk::Meta { .. } => EventKind::Meta,
        Chunk::Delta { .. } | Chunk::Snapshot { .. } => EventKind::Chunk,
        Chunk::Progress(_) => EventKind::Progress,
        Chunk::Final { .. } => EventKind::Final,
        Chunk::Error { .. } => EventKind::Error,
    };
    // A chunk is maps with string keys and finite numbers all the way down: it always serialises.
    let body = serde_json::to_string(chunk).unwrap_or_default();
    EncodedEvent {
        kind,
        seq: chunk.seq(),
        body: Arc::from(body),
    }
}

/// The envelope that a last event stands for: what a caller who did not stream gets.
pub fn envelope(last: &EncodedEvent) -> Value {
    let chunk = serde_json::from_str(&last.body).ok().map(Chunk::of_own);
    // Without an end it is a stream that was cut off.
    let envelope = chunk.and_then(envelope_of);
    envelope.unwrap_or_else(|| Assembler::new().finish().envelope)
}

/// The same as JSON, copied from the event where it is a good end; `None` where [`envelope`] has to read it.
pub fn envelope_text(last: &EncodedEvent) -> Option<String> {
    match last.kind {
        EventKind::Final => stream::envelope_text(&last.body),
        _ => None,
    }
}

pub(crate) fn decode(event: &EncodedEvent) -> Option<Chunk> {
    let value = serde_json::from_str(&event.body).ok()?;
    Chunk::from_value(value).ok()
}
