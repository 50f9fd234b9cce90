//! Passthrough of a stream while it is decoded: bytes are emitted in complete frames with the events that
//! they encode. Errors and incomplete frames are never emitted as bytes, so nothing has to be retracted; the
//! usage frame is removed if the caller did not request it.

use std::collections::VecDeque;

use bytes::Bytes;
use engine::port::{RawChunk, RawItem};
use ir::{Dialect, Event};
use memchr::{memchr, memmem};
use serde::Deserialize;
use serde::de::IgnoredAny;
use wire::Decoder;

/// The end marker, for servers that omit it.
const DONE: &[u8] = b"data: [DONE]\n\n";

#[derive(Debug)]
pub(super) struct RawTap {
    dialect: Dialect,
    /// The caller requested a stream.
    pub(super) streams: bool,
    hides_usage: bool,
    /// An incomplete frame.
    partial_frame: Vec<u8>,
}

impl RawTap {
    pub(super) fn new(dialect: Dialect, streams: bool, hides_usage: bool) -> Self {
        Self {
            dialect,
            streams,
            hides_usage,
            partial_frame: Vec::new(),
        }
    }

    /// Decodes bytes that may be split at any position.
    pub(super) fn push(&mut self, bytes: Bytes, decoder: &mut Decoder, out: &mut VecDeque<RawItem>) {
        let known = self.partial_frame.len();
        let bytes = match known {
            0 => bytes,
            _ => {
                self.partial_frame.extend_from_slice(&bytes);
                Bytes::from(std::mem::take(&mut self.partial_frame))
            }
        };
        // A blank line may span the buffered bytes and the new ones.
        let Some(end) = last_end(&bytes, known.saturating_sub(2)) else {
            self.partial_frame = Vec::from(bytes);
            return;
        };
        self.partial_frame.extend_from_slice(&bytes[end..]);
        let mut piece = FrameRun::default();
        let mut from = 0;
        while from < end {
            let to = first_end(&bytes[..end], from).unwrap_or(end);
            let frame = &bytes[from..to];
            let known = piece.events.len();
            decoder.push(frame, &mut piece.events);
            let new = piece.events.get(known..).unwrap_or_default();
            if let Some(at) = new.iter().position(is_error) {
                let mut broken = piece.events.split_off(known + at);
                piece.flush(&bytes, out);
                out.extend(broken.drain(..1).map(RawItem::Event));
                return;
            }
            if self.hides_usage && new.iter().any(is_usage) && has_only_usage(frame) {
                piece.flush(&bytes, out);
                piece.start = to;
            }
            piece.end = to;
            from = to;
        }
        piece.flush(&bytes, out);
    }

    /// Ends the input.
    pub(super) fn finish(&mut self, decoder: &mut Decoder, out: &mut VecDeque<RawItem>) {
        let mut events = Vec::new();
        let mut bytes = std::mem::take(&mut self.partial_frame);
        decoder.push(&bytes, &mut events);
        decoder.finish(&mut events);
        let broken = events.iter().position(is_error).map(|at| events.split_off(at));
        if is_whole(&bytes) {
            bytes.truncate(bytes.trim_ascii_end().len());
            bytes.extend_from_slice(b"\n\n");
        } else {
            bytes.clear();
        }
        if self.dialect == Dialect::OpenaiChat && events.iter().any(is_finish) && !has_done_marker(&bytes) {
            bytes.extend_from_slice(DONE);
        }
        if !events.is_empty() || !bytes.is_empty() && broken.is_none() {
            out.push_back(RawItem::Chunk(RawChunk {
                bytes: bytes.into(),
                events,
            }));
        }
        out.extend(broken.into_iter().flatten().take(1).map(RawItem::Event));
    }
}

/// Consecutive frames that are emitted together.
#[derive(Default)]
struct FrameRun {
    start: usize,
    end: usize,
    events: Vec<Event>,
}

impl FrameRun {
    fn flush(&mut self, bytes: &Bytes, out: &mut VecDeque<RawItem>) {
        if self.end > self.start || !self.events.is_empty() {
            out.push_back(RawItem::Chunk(RawChunk {
                bytes: bytes.slice(self.start..self.end.max(self.start)),
                events: std::mem::take(&mut self.events),
            }));
        }
        self.start = self.end;
    }
}

/// The offset behind the first blank line from `from` on.
fn first_end(bytes: &[u8], mut from: usize) -> Option<usize> {
    loop {
        let line = from + memchr(b'\n', bytes.get(from..)?)?;
        match bytes.get(line + 1..) {
            Some([b'\n', ..]) => return Some(line + 2),
            Some([b'\r', b'\n', ..]) => return Some(line + 3),
            _ => from = line + 1,
        }
    }
}

/// The offset behind the last blank line.
fn last_end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut last = None;
    let mut from = from;
    while let Some(end) = first_end(bytes, from) {
        last = Some(end);
        from = end;
    }
    last
}

fn is_error(event: &Event) -> bool {
    matches!(event, Event::Error { .. })
}

fn is_usage(event: &Event) -> bool {
    matches!(event, Event::Usage { .. })
}

fn is_finish(event: &Event) -> bool {
    matches!(event, Event::Finish { .. })
}

fn has_done_marker(bytes: &[u8]) -> bool {
    data_of(bytes) == b"[DONE]"
}

/// Whether the remaining bytes are a complete frame without the final blank line.
fn is_whole(bytes: &[u8]) -> bool {
    has_done_marker(bytes) || serde_json::from_slice::<IgnoredAny>(data_of(bytes)).is_ok()
}

/// The content of the last `data:` field.
fn data_of(bytes: &[u8]) -> &[u8] {
    let at = memmem::rfind(bytes, b"data:").map_or(bytes.len(), |at| at + b"data:".len());
    bytes.get(at..).unwrap_or_default().trim_ascii()
}

/// Whether a frame contains usage and no content.
fn has_only_usage(frame: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Chunk {
        #[serde(default)]
        choices: Vec<IgnoredAny>,
    }
    let data = memchr(b'{', frame).and_then(|at| frame.get(at..));
    let mut values = serde_json::Deserializer::from_slice(data.unwrap_or_default()).into_iter::<Chunk>();
    matches!(values.next(), Some(Ok(chunk)) if chunk.choices.is_empty())
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use bytes::Bytes;
    use engine::port::RawItem;
    use ir::{Dialect, Event};
    use proptest::prelude::*;
    use wire::Decoder;

    use super::{RawTap, is_error, is_finish, is_usage};

    const CHAT: &str = include_str!("../../../wire/tests/fixtures/llama-server/chat-stream.sse");
    const MESSAGES: &str = include_str!("../../../wire/tests/fixtures/llama-server/messages-stream.sse");
    const FAULT: &str = "data: {\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\"}}\n\n";

    /// Bytes and events for a stream that arrives in these pieces and then ends.
    fn tapped(dialect: Dialect, hides_usage: bool, pieces: &[&[u8]]) -> (String, Vec<Event>) {
        let mut decoder = Decoder::new(dialect).unwrap();
        let mut tap = RawTap::new(dialect, true, hides_usage);
        let mut out = VecDeque::new();
        for piece in pieces {
            tap.push(Bytes::copy_from_slice(piece), &mut decoder, &mut out);
        }
        tap.finish(&mut decoder, &mut out);
        let (mut bytes, mut events) = (Vec::new(), Vec::new());
        for said in out {
            match said {
                RawItem::Chunk(piece) => {
                    assert!(!piece.events.iter().any(is_error), "errors come alone");
                    bytes.extend_from_slice(&piece.bytes);
                    events.extend(piece.events);
                }
                RawItem::Event(event) => events.push(event),
            }
        }
        (String::from_utf8(bytes).unwrap(), events)
    }

    fn decoded(dialect: Dialect, stream: &str) -> Vec<Event> {
        let mut decoder = Decoder::new(dialect).unwrap();
        let mut events = Vec::new();
        decoder.push(stream.as_bytes(), &mut events);
        decoder.finish(&mut events);
        events
    }

    /// The stream split at these positions.
    fn pieces<'a>(stream: &'a str, cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        places.extend([0, stream.len()]);
        places.sort_unstable();
        let borders = places.windows(2);
        borders
            .map(|border| &stream.as_bytes()[border[0]..border[1]])
            .collect()
    }

    #[test]
    fn strips_usage_only_frame() {
        let (bytes, events) = tapped(Dialect::OpenaiChat, true, &[CHAT.as_bytes()]);
        assert_eq!(
            events,
            decoded(Dialect::OpenaiChat, CHAT),
            "what it means does not"
        );
        assert!(events.iter().any(is_usage));
        let (kept, dropped): (Vec<&str>, Vec<&str>) = CHAT
            .split_inclusive("\n\n")
            .partition(|frame| !frame.contains("\"choices\":[]"));
        assert_eq!(dropped.len(), 1);
        assert_eq!(bytes, kept.concat());
    }

    #[test]
    fn adds_missing_end_marker() {
        let stream = CHAT.replace("data: [DONE]\n\n", "");
        let (bytes, events) = tapped(Dialect::OpenaiChat, false, &[stream.as_bytes()]);
        assert_eq!(bytes, CHAT);
        assert!(events.iter().any(is_finish));
        let bare = CHAT.trim_end();
        assert_eq!(tapped(Dialect::OpenaiChat, false, &[bare.as_bytes()]).0, CHAT);
    }

    #[test]
    fn errors_are_never_emitted_as_bytes() {
        let (start, _) = CHAT.split_at(CHAT.find("\n\n").unwrap() + 2);
        let stream = format!("{start}{FAULT}data: [DONE]\n\n");
        let (bytes, events) = tapped(Dialect::OpenaiChat, false, &[stream.as_bytes()]);
        assert_eq!(bytes, start);
        assert_eq!(events.iter().filter(|event| is_error(event)).count(), 1);
        assert!(is_error(events.last().unwrap()));
    }

    proptest! {
        #[test]
        fn split_positions_do_not_change_output(
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12), other in any::<bool>(),
        ) {
            let (dialect, stream) = match other {
                true => (Dialect::Anthropic, MESSAGES),
                false => (Dialect::OpenaiChat, CHAT),
            };
            let (bytes, events) = tapped(dialect, false, &pieces(stream, &cuts));
            prop_assert_eq!(bytes, stream);
            prop_assert_eq!(events, decoded(dialect, stream));
        }

        /// A stream truncated anywhere gives complete frames, then one error unless it was complete.
        #[test]
        fn truncated_stream_emits_only_complete_frames(
            end in any::<prop::sample::Index>(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        ) {
            let stream = CHAT.get(..end.index(CHAT.len())).unwrap();
            let (bytes, events) = tapped(Dialect::OpenaiChat, false, &pieces(stream, &cuts));
            let shown = bytes.strip_suffix("data: [DONE]\n\n").unwrap_or(&bytes);
            prop_assert!(CHAT.starts_with(shown));
            prop_assert!(bytes.is_empty() || bytes.ends_with("\n\n"));
            let errors = events.iter().filter(|event| is_error(event)).count();
            let good = events.iter().any(is_finish);
            prop_assert_eq!(errors, usize::from(!good));
            prop_assert_eq!(bytes.contains("[DONE]"), good);
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..6)) {
            let mut decoder = Decoder::new(Dialect::OpenaiChat).unwrap();
            let mut tap = RawTap::new(Dialect::OpenaiChat, true, true);
            let mut out = VecDeque::new();
            for piece in pieces {
                tap.push(piece.into(), &mut decoder, &mut out);
            }
            tap.finish(&mut decoder, &mut out);
        }
    }
}
