//! What was emitted of a response, as far as another back-end can continue it: plain text in one block, byte
//! for byte. A response with any other output is not continuable.

use std::sync::Arc;

use ir::operation::Feature;
use ir::{Block, ChatRequest, Degradation, Delta, Event, Message, Request, ResponseFormat, Role};

use crate::limits;

#[derive(Debug, Default)]
pub(super) struct Continuation {
    /// Text is recorded only if a back-end can continue it.
    recording: bool,
    started: Option<Event>,
    text: String,
    /// The index of the text block.
    block: Option<u32>,
    /// The block has ended; more text requires another one.
    closed: bool,
    /// Number of text deltas: a lower bound of the number of tokens.
    deltas: u64,
    /// Something other than plain text was emitted.
    not_continuable: bool,
    going_on: Option<BlockMapping>,
}

/// Maps the events of the continuing back-end to the blocks that the caller has.
#[derive(Debug, Default)]
struct BlockMapping {
    /// The index of the continued block in the caller's stream.
    caller_index: u32,
    /// The caller has not received the start of this block.
    needs_start: bool,
    /// The index of the same block in the back-end's stream.
    backend_index: Option<u32>,
    /// Trailing white space that the caller has and the prefix omits: the back-end may repeat it.
    trailing_space: String,
}

impl Continuation {
    /// `can_continue`: some back-end of the fleet can continue a text.
    pub(super) fn new(request: &Request, can_continue: bool) -> Self {
        Self {
            recording: can_continue && request.as_chat().is_some_and(is_plain),
            ..Self::default()
        }
    }

    /// Records an event that is emitted to the caller.
    pub(super) fn observe(&mut self, event: &Event) {
        if !self.recording {
            return;
        }
        match event {
            Event::Started { .. } => {
                self.started.get_or_insert_with(|| event.clone());
            }
            Event::BlockStart {
                index,
                block: Block::Text,
            } if self.block.is_none() || self.closed => {
                self.block = Some(*index);
                self.closed = false;
            }
            Event::BlockDelta {
                index,
                delta: Delta::Text { text },
            } if *self.block.get_or_insert(*index) == *index
                && self.text.len() + text.len() <= limits::REPLY_BYTES_MAX =>
            {
                self.text.push_str(text);
                self.deltas += 1;
            }
            Event::BlockEnd { index } if self.block == Some(*index) => self.closed = true,
            Event::BlockDelta {
                delta: Delta::Meta { .. },
                ..
            }
            | Event::Usage { .. }
            | Event::Meta { .. }
            | Event::Warning { .. }
            | Event::Raw { .. }
            | Event::Finish { .. }
            | Event::Error { .. } => {}
            Event::BlockStart { .. }
            | Event::BlockDelta { .. }
            | Event::BlockEnd { .. }
            | Event::VendorSpecific { .. } => {
                self.not_continuable = true;
                self.text = String::new();
            }
        }
    }

    /// The request that continues the response, if it is continuable.
    pub(super) fn continuation_request(&mut self, asked: &Arc<Request>) -> Option<Arc<Request>> {
        if !self.recording || self.not_continuable {
            return None;
        }
        // Back-ends refuse a prefix that ends in white space, and models continue badly after one.
        let prefix = self.text.trim_end();
        let index = self.block.unwrap_or_default();
        self.going_on = Some(BlockMapping {
            caller_index: if self.closed { index + 1 } else { index },
            needs_start: self.closed,
            backend_index: None,
            trailing_space: String::from(self.text.get(prefix.len()..).unwrap_or_default()),
        });
        let mut request = Request::clone(asked);
        let ir::envelope::Payload::Chat(chat) = &mut request.payload else {
            return None;
        };
        if let Some(most) = &mut chat.generation.max_tokens {
            *most = most.saturating_sub(self.deltas).max(1);
        }
        if !prefix.is_empty() {
            chat.messages.push(Message::text(Role::Assistant, prefix));
            request.requirements.required_features.insert(Feature::Prefill);
            // llama.cpp's server repeats the prefix in responses that are not streamed, and only there.
            let strict = Degradation::Strict;
            request.degradation_overrides.insert(Feature::Stream, strict);
        }
        Some(Arc::new(request))
    }

    /// The events that produce everything emitted so far.
    pub(super) fn emitted_events(&self) -> Vec<Event> {
        let index = self.block.unwrap_or_default();
        let text = Event::text(index, self.text.as_str());
        let block = Block::Text;
        let mut events: Vec<Event> = self.started.clone().into_iter().collect();
        events.extend([Event::BlockStart { index, block }, text]);
        if self.closed {
            events.push(Event::BlockEnd { index });
        }
        events
    }

    pub(super) fn is_continuing(&self) -> bool {
        self.going_on.is_some()
    }

    /// An event of the continuing back-end, remapped; `None` if it adds nothing.
    pub(super) fn remap(&mut self, event: Event) -> Option<Event> {
        let Some(rest) = &mut self.going_on else {
            return Some(event);
        };
        match event {
            // The response has started already, and its metadata is that of the first back-end.
            Event::Started { .. } | Event::Meta { .. } | Event::VendorSpecific { .. } | Event::Raw { .. } => {
                None
            }
            Event::BlockStart {
                index,
                block: Block::Text,
            } if rest.backend_index.is_none() => {
                rest.backend_index = Some(index);
                rest.begin()
            }
            Event::BlockDelta {
                index,
                delta: Delta::Text { text },
            } if *rest.backend_index.get_or_insert(index) == index => {
                let text = rest.without_repeated_space(text);
                (!text.is_empty()).then(|| Event::text(rest.caller_index, text))
            }
            Event::BlockStart { index, block } => Some(Event::BlockStart {
                index: rest.place(index),
                block,
            }),
            Event::BlockDelta { index, delta } => Some(Event::BlockDelta {
                index: rest.place(index),
                delta,
            }),
            Event::BlockEnd { index } => Some(Event::BlockEnd {
                index: rest.place(index),
            }),
            event @ (Event::Usage { .. }
            | Event::Warning { .. }
            | Event::Finish { .. }
            | Event::Error { .. }) => Some(event),
        }
    }
}

impl BlockMapping {
    fn begin(&self) -> Option<Event> {
        self.needs_start.then_some(Event::BlockStart {
            index: self.caller_index,
            block: Block::Text,
        })
    }

    /// Swaps the indices of the two text blocks, so that no two blocks share one.
    fn place(&self, index: u32) -> u32 {
        match self.backend_index {
            Some(backend_index) if index == backend_index => self.caller_index,
            Some(backend_index) if index == self.caller_index => backend_index,
            _ => index,
        }
    }

    fn without_repeated_space(&mut self, text: String) -> String {
        if self.trailing_space.is_empty() {
            return text;
        }
        let same = text
            .chars()
            .zip(self.trailing_space.chars())
            .take_while(|(new, known)| new == known);
        let bytes: usize = same.map(|(new, _)| new.len_utf8()).sum();
        if bytes == text.len() {
            self.trailing_space.drain(..bytes);
        } else {
            self.trailing_space.clear();
        }
        String::from(text.get(bytes..).unwrap_or_default())
    }
}

/// Whether the response is one plain text. A grammar would start over after a prefix, and reasoning precedes
/// the text.
fn is_plain(chat: &ChatRequest) -> bool {
    let generation = &chat.generation;
    let free = matches!(chat.response_format, None | Some(ResponseFormat::Text));
    let thinks = chat
        .reasoning
        .as_ref()
        .is_some_and(|reasoning| reasoning.enabled != Some(false));
    let alone = generation.n.is_none_or(|n| n <= 1) && generation.logprobs != Some(true);
    chat.streams() && free && !thinks && alone && chat.modalities.iter().all(|kind| kind == "text")
}
