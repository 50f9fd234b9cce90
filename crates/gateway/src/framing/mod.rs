//! Stream framing. A framing wraps encoded documents and does not parse them.

#[cfg(test)]
mod tests;

use engine::port::EncodedEvent;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    #[default]
    Sse,
    /// One JSON document per line.
    Ndjson,
}

impl Framing {
    pub(crate) const ALL: [Self; 2] = [Self::Sse, Self::Ndjson];

    /// The name in the declared capabilities.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sse => "sse",
            Self::Ndjson => "ndjson",
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Sse => "text/event-stream",
            Self::Ndjson => "application/x-ndjson",
        }
    }

    /// Several events of a run in one buffer, for a single write. Only chunks have an `id:`, their sequence
    /// number, so that the `Last-Event-ID` of a browser is a resume point.
    pub(crate) fn frame(self, events: &[EncodedEvent]) -> Vec<u8> {
        let size = events.iter().map(|event| event.body.len() + 48).sum();
        let mut bytes = Vec::with_capacity(size);
        for event in events {
            if self == Self::Sse {
                bytes.extend_from_slice(b"event: ");
                bytes.extend_from_slice(event.kind.as_str().as_bytes());
                if let Some(seq) = event.seq {
                    bytes.extend_from_slice(format!("\nid: {seq}").as_bytes());
                }
                bytes.push(b'\n');
            }
            self.write(event.body.as_bytes(), &mut bytes);
        }
        bytes
    }

    /// One document, which is a single line of JSON: line breaks in strings are escaped.
    pub(crate) fn write(self, document: &[u8], bytes: &mut Vec<u8>) {
        let (start, end): (&[u8], &[u8]) = match self {
            Self::Sse => (b"data: ", b"\n\n"),
            Self::Ndjson => (b"", b"\n"),
        };
        for part in [start, document, end] {
            bytes.extend_from_slice(part);
        }
    }

    /// A heartbeat, which is not an event.
    pub(crate) fn heartbeat(self) -> &'static [u8] {
        match self {
            Self::Sse => b": hb\n\n",
            Self::Ndjson => b"\n",
        }
    }
}
