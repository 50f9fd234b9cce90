//! Folds an event stream into the complete response, which equals the response of the same back-end without
//! streaming. Blocks and bytes are bounded; exceeding a bound is an error.

use crate::chat::{ChatResponse, Part, PartBody, Reasoning, ToolCall};
use crate::dialect::Dialect;
use crate::error::{Error, Phase};
use crate::event::{Block, Delta, Event};
use crate::ext::Ext;
use crate::limits::{BLOCKS_MAX, FOLD_BYTES_MAX};
use crate::media::{Base64, MediaSource};

#[derive(Clone, Debug, Default)]
pub struct Fold {
    response: ChatResponse,
    blocks: Vec<(u32, Part)>,
    bytes: usize,
    error: Option<Error>,
}

impl Fold {
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies the next event. Events after an error are ignored.
    pub fn push(&mut self, event: Event) {
        if self.error.is_some() {
            return;
        }
        match event {
            Event::Started { id, model, created } => {
                self.response.created = created.or(self.response.created);
                self.response.id = id.or_else(|| self.response.id.take());
                self.response.model = model.or_else(|| self.response.model.take());
            }
            Event::BlockStart { index, block } => self.start(index, block),
            Event::BlockDelta { index, delta } => self.grow(index, delta),
            Event::BlockEnd { .. } => {}
            Event::Usage { usage } => self.response.usage.get_or_insert_default().update(usage),
            Event::Meta { ext } => self.response.ext.merge(ext),
            Event::Warning { warning } => self.response.warnings.push(warning),
            Event::VendorSpecific { .. } | Event::Raw { .. } => {}
            Event::Finish { reason } => self.response.finish_reason = Some(reason),
            Event::Error { error } => self.error = Some(error),
        }
    }

    /// The response, or the error that ended the stream.
    pub fn finish(mut self) -> Result<ChatResponse, Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        // A decoder numbers blocks by their final position; providers may start them in another order.
        self.blocks.sort_by_key(|(index, _)| *index);
        self.response.parts = self.blocks.into_iter().map(|(_, part)| part.settled()).collect();
        Ok(self.response)
    }

    fn start(&mut self, index: u32, block: Block) {
        if self.blocks.len() >= BLOCKS_MAX {
            self.fail("too many blocks");
        } else {
            self.blocks.push((index, Part::from(empty_part(block))));
        }
    }

    fn grow(&mut self, index: u32, delta: Delta) {
        let Some((_, part)) = self.blocks.iter_mut().rev().find(|(at, _)| *at == index) else {
            return self.fail("delta for a block that was not started");
        };
        let added = extend(part, delta);
        self.bytes = self.bytes.saturating_add(added);
        if self.bytes > FOLD_BYTES_MAX {
            self.fail("the answer exceeds its size limit");
        }
    }

    fn fail(&mut self, what: &str) {
        self.error = Some(Error::invalid_response(
            Phase::MidStream,
            format!("invalid stream: {what}"),
        ));
    }
}

/// The initial part of a block.
fn empty_part(block: Block) -> PartBody {
    match block {
        Block::Text => PartBody::Text(String::new()),
        Block::Refusal => PartBody::Refusal(String::new()),
        Block::Reasoning { form, id, origin } => PartBody::Reasoning(Reasoning {
            form,
            id,
            origin,
            ..Reasoning::default()
        }),
        Block::ToolCall { id, name } => PartBody::ToolCall(ToolCall::new(id, name, String::new())),
        Block::Media { media } => PartBody::Media(media),
        Block::Unknown { dialect, raw } => PartBody::Unknown { dialect, raw },
    }
}

/// Adds a delta to a part and returns the number of bytes added. A delta that does not match its block is
/// ignored; decoders never produce one.
fn extend(part: &mut Part, delta: Delta) -> usize {
    let append = |slot: &mut Option<String>, piece: String| {
        let added = piece.len();
        slot.get_or_insert_default().push_str(&piece);
        added
    };
    match (&mut part.body, delta) {
        (PartBody::Text(text) | PartBody::Refusal(text), Delta::Text { text: piece }) => {
            text.push_str(&piece);
            piece.len()
        }
        (PartBody::Reasoning(reasoning), Delta::Reasoning { text }) => append(&mut reasoning.text, text),
        (PartBody::Reasoning(reasoning), Delta::Signature { signature }) => {
            append(&mut reasoning.signature, signature)
        }
        (PartBody::Reasoning(reasoning), Delta::Sealed { data }) => append(&mut reasoning.data, data),
        (PartBody::ToolCall(call), Delta::ToolArguments { json }) => {
            call.arguments_raw.push_str(&json);
            json.len()
        }
        // The transcript of a recording is its text fallback.
        (PartBody::Media(media), Delta::Text { text }) => append(&mut media.text_fallback, text),
        (PartBody::Media(media), Delta::Data { base64 }) => match &mut media.source {
            MediaSource::Inline(data) => {
                data.push_str(&base64);
                base64.len()
            }
            source => {
                let added = base64.len();
                *source = MediaSource::Inline(Base64::from_text(base64));
                added
            }
        },
        (_, Delta::Annotation { dialect, list, value }) => {
            part.ext.push(dialect, &list, value);
            list.len()
        }
        (_, Delta::Meta { ext }) => {
            part.ext.merge(ext);
            0
        }
        _ => 0,
    }
}

/// The events of a complete response; the inverse of [`Fold`].
pub fn unfold(response: &ChatResponse) -> Vec<Event> {
    // Three events per part in most cases, and three for the response.
    let mut events = Vec::with_capacity(3 + 3 * response.parts.len());
    events.push(Event::Started {
        id: response.id.clone(),
        model: response.model.clone(),
        created: response.created,
    });
    if !response.ext.is_empty() {
        events.push(Event::Meta {
            ext: response.ext.clone(),
        });
    }
    for (index, part) in (0_u32..).zip(&response.parts) {
        let (block, deltas) = decompose(part);
        events.push(Event::BlockStart { index, block });
        events.extend(deltas.into_iter().map(|delta| Event::BlockDelta { index, delta }));
        if !part.ext.is_empty() {
            events.push(Event::BlockDelta {
                index,
                delta: Delta::Meta {
                    ext: part.ext.clone(),
                },
            });
        }
        events.push(Event::BlockEnd { index });
    }
    events.extend(response.warnings.iter().map(|warning| Event::Warning {
        warning: warning.clone(),
    }));
    events.extend(
        response
            .usage
            .iter()
            .map(|usage| Event::Usage { usage: usage.clone() }),
    );
    events.extend(response.finish_reason.iter().map(|reason| Event::Finish {
        reason: reason.clone(),
    }));
    events
}

fn decompose(part: &Part) -> (Block, Vec<Delta>) {
    match &part.body {
        PartBody::Text(text) => (Block::Text, vec![Delta::Text { text: text.clone() }]),
        PartBody::Refusal(text) => (Block::Refusal, vec![Delta::Text { text: text.clone() }]),
        PartBody::Reasoning(reasoning) => {
            let block = Block::Reasoning {
                form: reasoning.form,
                id: reasoning.id.clone(),
                origin: reasoning.origin.clone(),
            };
            let text = reasoning.text.clone().map(|text| Delta::Reasoning { text });
            let data = reasoning.data.clone().map(|data| Delta::Sealed { data });
            let signature = reasoning
                .signature
                .clone()
                .map(|signature| Delta::Signature { signature });
            (block, [text, data, signature].into_iter().flatten().collect())
        }
        PartBody::ToolCall(call) => (
            Block::ToolCall {
                id: call.id.clone(),
                name: call.name.clone(),
            },
            vec![Delta::ToolArguments {
                json: call.arguments_raw.clone(),
            }],
        ),
        PartBody::Media(media) => (Block::Media { media: media.clone() }, Vec::new()),
        PartBody::Unknown { dialect, raw } => (
            Block::Unknown {
                dialect: dialect.clone(),
                raw: raw.clone(),
            },
            Vec::new(),
        ),
        // A response has no tool results; one that has them is encoded as an unknown block.
        PartBody::ToolResult(result) => {
            let raw = serde_json::to_value(result).unwrap_or_default();
            (
                Block::Unknown {
                    dialect: String::from(Dialect::Canonical.as_str()),
                    raw,
                },
                Vec::new(),
            )
        }
    }
}

/// Dialect-specific facts as an event, if there are any.
pub fn meta(dialect: Dialect, rest: crate::ext::Map) -> Option<Event> {
    (!rest.is_empty()).then(|| Event::Meta {
        ext: Ext::of(dialect, rest),
    })
}
