//! What the caller has of an answer, as far as another back-end could go on behind it: plain text in one
//! block, word for word. Whatever else was shown cannot be gone on with.

use std::sync::Arc;

use ir::operation::Feature;
use ir::{Block, ChatRequest, Degradation, Delta, Event, Message, Request, ResponseFormat, Role};

use crate::limits;

#[derive(Debug, Default)]
pub(super) struct Continuation {
    /// Nothing is gathered of an answer that nobody could go on with.
    gathers: bool,
    started: Option<Event>,
    text: String,
    /// The place of the text's block.
    block: Option<u32>,
    /// The block has ended; more text would need another.
    closed: bool,
    /// How many deltas the text came in: as many tokens, at least.
    deltas: u64,
    /// Something was shown that is not plain text.
    not_continuable: bool,
    going_on: Option<BlockMapping>,
}

/// How the words of another back-end fit behind what is there.
#[derive(Debug, Default)]
struct BlockMapping {
    /// The block that the rest goes to, as the caller counts.
    ours: u32,
    /// The caller has not seen this block begin.
    fresh: bool,
    /// The same block, as the back-end counts.
    theirs: Option<u32>,
    /// Space that the caller has and the back-end was not told of: it may write it again.
    doubled: String,
}

impl Continuation {
    /// For a request whose answer could be gone on with.
    pub(super) fn new(request: &Request, somebody_goes_on: bool) -> Self {
        Self {
            gathers: somebody_goes_on && request.as_chat().is_some_and(is_plain),
            ..Self::default()
        }
    }

    /// The caller gets this.
    pub(super) fn observe(&mut self, event: &Event) {
        if !self.gathers {
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

    /// The request by which another back-end goes on, if that can be asked for at all.
    pub(super) fn continuation_request(&mut self, asked: &Arc<Request>) -> Option<Arc<Request>> {
        if !self.gathers || self.not_continuable {
            return None;
        }
        // Back-ends refuse a prefix that ends in space, and models go on badly behind one.
        let prefix = self.text.trim_end();
        let ours = self.block.unwrap_or_default();
        self.going_on = Some(BlockMapping {
            ours: if self.closed { ours + 1 } else { ours },
            fresh: self.closed,
            theirs: None,
            doubled: String::from(self.text.get(prefix.len()..).unwrap_or_default()),
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
            // llama.cpp's server says the prefix again where its answer comes whole, and only there.
            let strict = Degradation::Strict;
            request.degradation_overrides.insert(Feature::Stream, strict);
        }
        Some(Arc::new(request))
    }

    /// What was shown, as the events that would have shown it.
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

    /// A word of the back-end that goes on, as it fits behind what is there; `None` if it adds nothing.
    pub(super) fn remap(&mut self, event: Event) -> Option<Event> {
        let Some(rest) = &mut self.going_on else {
            return Some(event);
        };
        match event {
            // The answer has begun already, and facts about another one are none about it.
            Event::Started { .. } | Event::Meta { .. } | Event::VendorSpecific { .. } | Event::Raw { .. } => None,
            Event::BlockStart {
                index,
                block: Block::Text,
            } if rest.theirs.is_none() => {
                rest.theirs = Some(index);
                rest.begin()
            }
            Event::BlockDelta {
                index,
                delta: Delta::Text { text },
            } if *rest.theirs.get_or_insert(index) == index => {
                let text = rest.without_doubled(text);
                (!text.is_empty()).then(|| Event::text(rest.ours, text))
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
        self.fresh.then_some(Event::BlockStart {
            index: self.ours,
            block: Block::Text,
        })
    }

    /// Their place in our count: the two blocks of text change places, so that no two blocks share one.
    fn place(&self, index: u32) -> u32 {
        match self.theirs {
            Some(theirs) if index == theirs => self.ours,
            Some(theirs) if index == self.ours => theirs,
            _ => index,
        }
    }

    fn without_doubled(&mut self, text: String) -> String {
        if self.doubled.is_empty() {
            return text;
        }
        let same = text
            .chars()
            .zip(self.doubled.chars())
            .take_while(|(new, known)| new == known);
        let bytes: usize = same.map(|(new, _)| new.len_utf8()).sum();
        if bytes == text.len() {
            self.doubled.drain(..bytes);
        } else {
            self.doubled.clear();
        }
        String::from(text.get(bytes..).unwrap_or_default())
    }
}

/// Whether the answer is to be one plain text. A grammar would begin anew behind a prefix, and thoughts come
/// before the text.
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
