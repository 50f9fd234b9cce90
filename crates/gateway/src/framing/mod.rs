//! Stream framing. A framing wraps encoded events and does not parse their bodies.

mod ndjson;
mod sse;
#[cfg(test)]
mod tests;

use engine::port::EncodedEvent;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Framing {
    #[default]
    Sse,
    Ndjson,
}

impl Framing {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Sse => "text/event-stream",
            Self::Ndjson => "application/x-ndjson",
        }
    }

    /// Several events in one buffer, for a single write.
    pub(crate) fn frame(self, events: &[EncodedEvent]) -> Vec<u8> {
        let size = events.iter().map(|event| event.body.len() + 48).sum();
        let mut bytes = Vec::with_capacity(size);
        for event in events {
            match self {
                Self::Sse => sse::write(event, &mut bytes),
                Self::Ndjson => ndjson::write(event, &mut bytes),
            }
        }
        bytes
    }

    /// A heartbeat, which is not an event.
    pub(crate) fn heartbeat(self) -> &'static [u8] {
        match self {
            Self::Sse => b": hb\n\n",
            Self::Ndjson => b"\n",
        }
    }
}
