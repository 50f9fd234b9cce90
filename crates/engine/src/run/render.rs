//! Encodes chunks to the events that are journaled and sent, and decodes the terminal event to an envelope.

use std::sync::Arc;

use module::stream::{Assembler, Chunk, envelope_of};
use serde_json::Value;

use crate::port::{EncodedEvent, EventKind};

/// Encodes a chunk once; every framing sends these bytes.
pub(crate) fn encode(chunk: &Chunk) -> EncodedEvent {
    let kind = match chunk {
        Chunk::Meta { .. } => EventKind::Meta,
        Chunk::Delta { .. } | Chunk::Snapshot { .. } => EventKind::Chunk,
        Chunk::Progress(_) => EventKind::Progress,
        Chunk::Final { .. } => EventKind::Final,
        Chunk::Error { .. } => EventKind::Error,
    };
    // A chunk has only string keys and finite numbers, so serialisation does not fail.
    let body = serde_json::to_string(chunk).unwrap_or_default();
    EncodedEvent {
        kind,
        seq: chunk.seq(),
        body: Arc::from(body),
    }
}

/// The envelope in a terminal event, as returned to a caller that does not stream.
pub fn envelope(last: &EncodedEvent) -> Value {
    let chunk = serde_json::from_str(&last.body).ok().map(Chunk::of_own);
    // Without a terminal event the stream was cut off.
    let envelope = chunk.and_then(envelope_of);
    envelope.unwrap_or_else(|| Assembler::new().finish().envelope)
}

pub(crate) fn decode(event: &EncodedEvent) -> Option<Chunk> {
    let value = serde_json::from_str(&event.body).ok()?;
    Chunk::from_value(value).ok()
}
